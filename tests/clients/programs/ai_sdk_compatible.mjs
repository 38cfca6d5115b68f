// The AI SDK with its provider of servers like OpenAI's, over Chat Completions.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { askBy } from "./ai_sdk.mjs";
import { address } from "./modes.mjs";

const settings = { name: "bardo", baseURL: `${address}/v1`, apiKey: "any", supportsStructuredOutputs: true };
const provider = createOpenAICompatible(settings);
await askBy((model) => provider(model), { bardo: { reasoningEffort: "low" } });
