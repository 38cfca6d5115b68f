// The AI SDK with its provider of Google.
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { askBy } from "./ai_sdk.mjs";
import { address } from "./modes.mjs";

const provider = createGoogleGenerativeAI({ baseURL: `${address}/v1beta`, apiKey: "any" });
await askBy((model) => provider(model), { google: { thinkingConfig: { thinkingBudget: 2048, includeThoughts: true } } });
