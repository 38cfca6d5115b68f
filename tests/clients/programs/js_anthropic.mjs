// Anthropic's SDK for JavaScript.
import Anthropic from "@anthropic-ai/sdk";
import { address, ask, city, place, question, schema, sunny, weather } from "./modes.mjs";

const client = new Anthropic({ baseURL: address, apiKey: "any", maxRetries: 0 });
const fields = (model, content) => ({ model, max_tokens: 4096, messages: [{ role: "user", content }] });
const tool = { name: "weather", description: "Tell the weather.", input_schema: place };
const textOf = (message) => message.content.map((block) => block.text ?? "").join("");

async function plain(model) {
  return textOf(await client.messages.create(fields(model, question)));
}

async function stream(model) {
  const pieces = [];
  const events = client.messages.stream(fields(model, question)).on("text", (text) => pieces.push(text));
  await events.finalMessage();
  return pieces;
}

async function tools(model) {
  const asked = { ...fields(model, weather), tools: [tool], thinking: { type: "enabled", budget_tokens: 2048 } };
  for (;;) {
    const message = await client.messages.stream(asked).finalMessage();
    const calls = message.content.filter((block) => block.type === "tool_use");
    if (!calls.length) return textOf(message);
    const results = calls.map(({ id, input }) => ({ type: "tool_result", tool_use_id: id, content: sunny(input) }));
    asked.messages.push({ role: "assistant", content: message.content }, { role: "user", content: results });
  }
}

async function structured(model) {
  const output_config = { format: { type: "json_schema", schema } };
  return JSON.parse(textOf(await client.messages.create({ ...fields(model, city), output_config })));
}

await ask({ plain, stream, tools, structured });
