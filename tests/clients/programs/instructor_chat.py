"""instructor over Chat Completions. It makes values only, so its other modes are those of OpenAI's SDK: they are not run again."""

import instructor
from modes import ADDRESS, CITY, ask
from openai import OpenAI
from pydantic import BaseModel


class City(BaseModel):
    name: str
    population: int


CLIENT = OpenAI(base_url=ADDRESS + "/v1", api_key="any", max_retries=0)
BY_SCHEMA = instructor.from_openai(CLIENT, mode=instructor.Mode.JSON_SCHEMA)
BY_TOOL = instructor.from_openai(CLIENT, mode=instructor.Mode.TOOLS)


def asked(client, model, **more):
    said = [{"role": "user", "content": CITY}]
    return client.chat.completions.create(model=model, response_model=City, messages=said, max_retries=1, **more)


def structured(model):
    by_schema, by_tool = asked(BY_SCHEMA, model).model_dump(), asked(BY_TOOL, model).model_dump()
    assert by_schema == by_tool, (by_schema, by_tool)
    return by_schema


ask(None, None, None, structured, structured)
