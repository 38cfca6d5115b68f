// What the programs of the AI SDK share: `askBy` takes how a model is opened, and how thinking is asked for.
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";
import { ask, city, place, question, schema, sunny, weather } from "./modes.mjs";

export async function askBy(open, providerOptions) {
  const own = (model) => ({ model: open(model), maxRetries: 0 });
  const tool_ = tool({ description: "Tell the weather.", inputSchema: jsonSchema(place), execute: async (given) => sunny(given) });

  async function plain(model) {
    return (await generateText({ ...own(model), prompt: question })).text;
  }

  async function stream(model) {
    const pieces = [];
    for await (const piece of streamText({ ...own(model), prompt: question, onError: () => {} }).textStream) pieces.push(piece);
    return pieces;
  }

  async function tools(model) {
    const asked = { ...own(model), prompt: weather, tools: { weather: tool_ }, stopWhen: stepCountIs(5), providerOptions };
    let failed;
    const text = await streamText({ ...asked, onError: ({ error }) => (failed = error) }).text;
    if (failed) throw failed;
    return text;
  }

  async function structured(model) {
    const output = Output.object({ schema: jsonSchema(schema) });
    return (await generateText({ ...own(model), prompt: city, output })).output;
  }

  await ask({ plain, stream, tools, structured });
}
