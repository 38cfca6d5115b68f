"""LiteLLM's library, by the provider that a program names. See the programs `litellm_…`."""

import json

import litellm
from modes import CITY, MODELS, PLACE, QUESTION, SCHEMA, WEATHER, ask, sunny

litellm.suppress_debug_info = True
litellm.drop_params = True
TOOL = {"type": "function", "function": {"name": "weather", "description": "Tell the weather.", "parameters": PLACE}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "city", "strict": True, "schema": SCHEMA}}


def ask_by(provider, api_base, **thinking):
    """Run the modes of one of LiteLLM's providers, which `thinking` has think."""

    # Of models that it does not know, LiteLLM sends a schema as words in the prompt.
    known = {"litellm_provider": provider, "mode": "chat", "supports_response_schema": True}
    litellm.register_model({f"{provider}/{model}": known for model in MODELS})

    def asked(model, messages, **more):
        fixed = {"api_base": api_base, "api_key": "any", "max_retries": 0, "num_retries": 0}
        return litellm.completion(model=f"{provider}/{model}", messages=messages, **fixed, **more)

    def said(text):
        return [{"role": "user", "content": text}]

    def plain(model):
        return asked(model, said(QUESTION)).choices[0].message.content

    def stream(model):
        pieces = asked(model, said(QUESTION), stream=True)
        return [piece.choices[0].delta.content for piece in pieces if piece.choices[0].delta.content]

    def tools(model):
        messages = said(WEATHER)
        while True:
            pieces = list(asked(model, messages, tools=[TOOL], stream=True, **thinking))
            message = litellm.stream_chunk_builder(pieces, messages=messages).choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message)
            for call in message.tool_calls:
                result = sunny(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def structured(model):
        return json.loads(asked(model, said(CITY), response_format=FORMAT).choices[0].message.content)

    ask(plain, stream, tools, structured)
