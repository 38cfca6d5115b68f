// Google's SDK for JavaScript.
import { GoogleGenAI } from "@google/genai";
import { address, ask, city, place, question, schema, sunny, weather } from "./modes.mjs";

const { models } = new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl: address } });
const tool = { name: "weather", description: "Tell the weather.", parametersJsonSchema: place };

async function plain(model) {
  return (await models.generateContent({ model, contents: question })).text;
}

async function stream(model) {
  const pieces = [];
  for await (const piece of await models.generateContentStream({ model, contents: question })) {
    if (piece.text) pieces.push(piece.text);
  }
  return pieces;
}

async function tools(model) {
  const contents = [{ role: "user", parts: [{ text: weather }] }];
  const thinkingConfig = { thinkingBudget: 2048, includeThoughts: true };
  const config = { tools: [{ functionDeclarations: [tool] }], thinkingConfig };
  for (;;) {
    const parts = [];
    for await (const piece of await models.generateContentStream({ model, contents, config })) {
      parts.push(...(piece.candidates?.[0]?.content?.parts ?? []));
    }
    const calls = parts.flatMap((part) => part.functionCall ?? []);
    if (!calls.length) return parts.map((part) => (part.thought ? "" : (part.text ?? ""))).join("");
    const results = calls.map(({ id, name, args }) => ({
      functionResponse: { id, name, response: { result: sunny(args) } },
    }));
    contents.push({ role: "model", parts }, { role: "user", parts: results });
  }
}

async function structured(model) {
  const config = { responseMimeType: "application/json", responseJsonSchema: schema };
  return JSON.parse((await models.generateContent({ model, contents: city, config })).text);
}

await ask({ plain, stream, tools, structured });
