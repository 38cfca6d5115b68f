// Ollama's library for JavaScript, which sends a message back as it came.
import { Ollama } from "ollama";
import { address, ask, city, place, question, schema, sunny, weather } from "./modes.mjs";

const client = new Ollama({ host: address });
const said = (content) => [{ role: "user", content }];
const tool = { type: "function", function: { name: "weather", description: "Tell the weather.", parameters: place } };

async function plain(model) {
  return (await client.chat({ model, messages: said(question) })).message.content;
}

async function stream(model) {
  const pieces = [];
  for await (const { message } of await client.chat({ model, messages: said(question), stream: true })) {
    if (message.content) pieces.push(message.content);
  }
  return pieces;
}

async function tools(model) {
  const messages = said(weather);
  for (;;) {
    const { message } = await client.chat({ model, messages, tools: [tool], think: "low" });
    if (!message.tool_calls?.length) return message.content;
    messages.push(message);
    for (const { function: called } of message.tool_calls) {
      messages.push({ role: "tool", tool_name: called.name, content: sunny(called.arguments) });
    }
  }
}

async function structured(model) {
  return JSON.parse((await client.chat({ model, messages: said(city), format: schema })).message.content);
}

await ask({ plain, stream, tools, structured });
