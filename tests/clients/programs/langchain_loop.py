"""Loops with a tool by LangChain, whole and streamed, over Responses and over Messages. Arguments: the gateway's address, and models."""

import sys

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return "sunny in " + city


def loop(model, streamed):
    asked, messages = model.bind_tools([weather]), [HumanMessage("How is the weather in Paris?")]
    while True:
        if streamed:
            pieces = list(asked.stream(messages))
            said = sum(pieces[1:], pieces[0])
        else:
            said = asked.invoke(messages)
        messages.append(said)
        if not said.tool_calls:
            return said.text
        messages += [weather.invoke(call) for call in said.tool_calls]


address, *models = sys.argv[1:]
for name in models:
    responses = ChatOpenAI(
        model=name,
        base_url=address + "/v1",
        api_key="any",
        use_responses_api=True,
        reasoning={"effort": "low", "summary": "auto"},
    )
    messages = ChatAnthropic(
        model=name,
        base_url=address,
        api_key="any",
        max_tokens=4096,
        thinking={"type": "enabled", "budget_tokens": 2048},
    )
    for streamed in (False, True):
        print(loop(responses, streamed))
        print(loop(messages, streamed))
