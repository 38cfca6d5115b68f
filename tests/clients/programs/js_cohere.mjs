// Cohere's SDK for JavaScript, version 2 of its chat.
import { CohereClientV2 } from "cohere-ai";
import { address, ask, city, place, question, schema, sunny, weather } from "./modes.mjs";

const client = new CohereClientV2({ token: "any", environment: address, maxRetries: 0 });
const said = (content) => [{ role: "user", content }];
const tool = { type: "function", function: { name: "weather", description: "Tell the weather.", parameters: place } };
const thinking = { type: "enabled", tokenBudget: 2048 };
const textOf = (message) => (message.content ?? []).map((part) => part.text ?? "").join("");

async function plain(model) {
  return textOf((await client.chat({ model, messages: said(question) })).message);
}

async function stream(model) {
  const pieces = [];
  for await (const event of await client.chatStream({ model, messages: said(question) })) {
    const text = event.type === "content-delta" && event.delta.message.content.text;
    if (text) pieces.push(text);
  }
  return pieces;
}

async function tools(model) {
  const messages = said(weather);
  for (;;) {
    const { message } = await client.chat({ model, messages, tools: [tool], thinking });
    if (!message.toolCalls?.length) return textOf(message);
    messages.push(message);
    for (const { id, function: called } of message.toolCalls) {
      messages.push({ role: "tool", toolCallId: id, content: sunny(JSON.parse(called.arguments)) });
    }
  }
}

async function structured(model) {
  const responseFormat = { type: "json_object", jsonSchema: schema };
  return JSON.parse(textOf((await client.chat({ model, messages: said(city), responseFormat })).message));
}

await ask({ plain, stream, tools, structured });
