"""LangChain, by the model class that its own module names. See the programs `langchain_…`."""

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from modes import CITY, QUESTION, SCHEMA, WEATHER, ask, sunny


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return sunny(city)


def ask_by(open_model, **thinking):
    """Run the modes of a model class, which `thinking` has think."""

    def plain(model):
        return open_model(model).invoke(QUESTION).text

    def stream(model):
        return [piece.text for piece in open_model(model).stream(QUESTION) if piece.text]

    def tools(model):
        asked, messages = open_model(model, **thinking).bind_tools([weather]), [HumanMessage(WEATHER)]
        while True:
            pieces = list(asked.stream(messages))
            said = sum(pieces[1:], pieces[0])
            messages.append(said)
            if not said.tool_calls:
                return said.text
            messages += [weather.invoke(call) for call in said.tool_calls]

    def structured(model):
        schema = {"title": "city", "description": "A city.", **SCHEMA}
        return open_model(model).with_structured_output(schema, method="json_schema").invoke(CITY)

    ask(plain, stream, tools, structured)
