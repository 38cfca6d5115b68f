// What the programs of LangChain for JavaScript share: `askBy` takes how a model is opened, and how it is made to think.
import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ask, city, place, question, schema, sunny, weather } from "./modes.mjs";

export async function askBy(open, thinking) {
  const tool_ = tool(async (given) => sunny(given), { name: "weather", description: "Tell the weather.", schema: place });

  async function plain(model) {
    return (await open(model).invoke(question)).text;
  }

  async function stream(model) {
    const pieces = [];
    for await (const { text } of await open(model).stream(question)) if (text) pieces.push(text);
    return pieces;
  }

  async function tools(model) {
    const asked = open(model, thinking).bindTools([tool_]);
    const messages = [new HumanMessage(weather)];
    for (;;) {
      let said;
      for await (const piece of await asked.stream(messages)) said = said ? said.concat(piece) : piece;
      if (!said.tool_calls?.length) return said.text;
      messages.push(said);
      for (const call of said.tool_calls) messages.push(await tool_.invoke(call));
    }
  }

  async function structured(model) {
    const titled = { title: "city", description: "A city.", ...schema };
    return open(model).withStructuredOutput(titled, { name: "city", method: "jsonSchema" }).invoke(city);
  }

  await ask({ plain, stream, tools, structured });
}
