// LangChain for JavaScript with ChatOpenAI over Responses.
import { ChatOpenAI } from "@langchain/openai";
import { askBy } from "./langchain_js.mjs";
import { address } from "./modes.mjs";

const fixed = { apiKey: "any", configuration: { baseURL: `${address}/v1` }, maxRetries: 0, useResponsesApi: true };
const open = (model, more) => new ChatOpenAI({ model, ...fixed, ...more });
await askBy(open, { modelKwargs: { reasoning: { effort: "low", summary: "auto" } } });
