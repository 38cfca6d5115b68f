// The AI SDK with its provider of Anthropic.
import { createAnthropic } from "@ai-sdk/anthropic";
import { askBy } from "./ai_sdk.mjs";
import { address } from "./modes.mjs";

const provider = createAnthropic({ baseURL: `${address}/v1`, apiKey: "any" });
await askBy((model) => provider(model), { anthropic: { thinking: { type: "enabled", budgetTokens: 2048 } } });
