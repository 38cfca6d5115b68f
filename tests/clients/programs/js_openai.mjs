// OpenAI's SDK for JavaScript over Responses and Chat Completions: streams and the loop over Responses, the rest over Chat Completions.
import OpenAI from "openai";
import { address, ask, city, place, question, schema, sunny, weather } from "./modes.mjs";

const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: "any", maxRetries: 0 });
const said = (content) => [{ role: "user", content }];
const tool = { type: "function", name: "weather", description: "Tell the weather.", parameters: place, strict: true };

async function plain(model) {
  const reply = await client.chat.completions.create({ model, messages: said(question) });
  return reply.choices[0].message.content;
}

async function stream(model) {
  const pieces = [];
  for await (const event of await client.responses.create({ model, input: question, stream: true })) {
    if (event.type === "response.output_text.delta") pieces.push(event.delta);
  }
  return pieces;
}

async function tools(model) {
  const input = said(weather);
  for (;;) {
    const asked = { model, input, tools: [tool], reasoning: { effort: "low", summary: "auto" } };
    const state = { include: ["reasoning.encrypted_content"], store: false };
    const reply = await client.responses.stream({ ...asked, ...state }).finalResponse();
    const calls = reply.output.filter((item) => item.type === "function_call");
    if (!calls.length) return reply.output_text;
    input.push(...reply.output);
    for (const { call_id, arguments: given } of calls) {
      input.push({ type: "function_call_output", call_id, output: sunny(JSON.parse(given)) });
    }
  }
}

async function structured(model) {
  const response_format = { type: "json_schema", json_schema: { name: "city", strict: true, schema } };
  const reply = await client.chat.completions.create({ model, messages: said(city), response_format });
  return JSON.parse(reply.choices[0].message.content);
}

await ask({ plain, stream, tools, structured });
