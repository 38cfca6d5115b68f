// LangChain for JavaScript with ChatOpenAI over Chat Completions.
import { ChatOpenAI } from "@langchain/openai";
import { askBy } from "./langchain_js.mjs";
import { address } from "./modes.mjs";

const configuration = { baseURL: `${address}/v1` };
const open = (model, more) => new ChatOpenAI({ model, apiKey: "any", configuration, maxRetries: 0, ...more });
await askBy(open, { modelKwargs: { reasoning_effort: "low" } });
