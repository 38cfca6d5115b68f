// LangChain for JavaScript with ChatGoogleGenerativeAI.
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { askBy } from "./langchain_js.mjs";
import { address } from "./modes.mjs";

const open = (model, more) => new ChatGoogleGenerativeAI({ model, apiKey: "any", baseUrl: address, maxRetries: 0, ...more });
await askBy(open, { thinkingConfig: { thinkingBudget: 2048, includeThoughts: true } });
