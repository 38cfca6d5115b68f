// The AI SDK with its provider of OpenAI, over Responses.
import { createOpenAI } from "@ai-sdk/openai";
import { askBy } from "./ai_sdk.mjs";
import { address } from "./modes.mjs";

const provider = createOpenAI({ baseURL: `${address}/v1`, apiKey: "any" });
const openai = { reasoningEffort: "low", reasoningSummary: "auto", store: false, forceReasoning: true };
await askBy((model) => provider(model), { openai });
