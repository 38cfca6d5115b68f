// The same as modes.py, for programs of JavaScript.
export const [address, ...models] = process.argv.slice(2);
export const question = "What is the longest river of France?";
export const weather = "How is the weather in Paris?";
export const city = "Describe the city of Paris.";
const refused = "+fault:status=400";
export const schema = {
  type: "object",
  properties: { name: { type: "string" }, population: { type: "integer" } },
  required: ["name", "population"],
  additionalProperties: false,
};
export const place = {
  type: "object",
  properties: { city: { type: "string", description: "The city." } },
  required: ["city"],
  additionalProperties: false,
};

export const sunny = ({ city }) => `sunny in ${city}`;

export async function ask(modes) {
  for (const model of models) {
    for (const [mode, run] of Object.entries({ ...modes, error: modes.error ?? modes.plain })) {
      let told;
      try {
        told = { result: await run(mode === "error" ? model + refused : model) };
      } catch (error) {
        told = { failed: error.name === "Error" ? error.constructor.name : error.name, message: String(error.message) };
      }
      console.log(JSON.stringify({ model, mode, ...told }));
    }
  }
}
