// Mastra's agents with a model by its router, at an address of one's own, over Chat Completions.
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import { address, ask, city, question, sunny, weather } from "./modes.mjs";

const tool = createTool({
  id: "weather",
  description: "Tell the weather.",
  inputSchema: z.object({ city: z.string() }),
  execute: async (given) => sunny(given),
});

function opened(name, more) {
  const [providerId] = name.split("/");
  const model = { providerId, modelId: name, url: `${address}/v1`, apiKey: "any" };
  return new Agent({ id: "one", name: "one", instructions: "Answer.", model, maxRetries: 0, ...more });
}

async function plain(model) {
  return (await opened(model).generate(question)).text;
}

async function stream(model) {
  const pieces = [];
  for await (const piece of (await opened(model).stream(question)).textStream) pieces.push(piece);
  return pieces;
}

async function tools(model) {
  const reply = await opened(model, { tools: { weather: tool } }).stream(weather, {
    providerOptions: { openaiCompatible: { reasoningEffort: "low" } },
  });
  return reply.text;
}

async function structured(model) {
  const form = z.object({ name: z.string(), population: z.number().int() });
  return (await opened(model).generate(city, { structuredOutput: { schema: form } })).object;
}

await ask({ plain, stream, tools, structured });
