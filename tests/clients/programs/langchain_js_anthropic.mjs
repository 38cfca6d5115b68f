// LangChain for JavaScript with ChatAnthropic.
import { ChatAnthropic } from "@langchain/anthropic";
import { askBy } from "./langchain_js.mjs";
import { address } from "./modes.mjs";

const fixed = { apiKey: "any", anthropicApiUrl: address, maxTokens: 4096, maxRetries: 0 };
const open = (model, more) => new ChatAnthropic({ model, ...fixed, ...more });
await askBy(open, { thinking: { type: "enabled", budget_tokens: 2048 } });
