"""DSPy, which asks by LiteLLM over Chat Completions."""

import dspy
from modes import ADDRESS, CITY, QUESTION, ask
from pydantic import BaseModel


class City(BaseModel):
    name: str
    population: int


class Describe(dspy.Signature):
    """Describe a city."""

    question: str = dspy.InputField()
    city: City = dspy.OutputField()


def opened(model):
    return dspy.LM(f"openai/{model}", api_base=ADDRESS + "/v1", api_key="any", cache=False, num_retries=0)


def plain(model):
    [said] = opened(model)(QUESTION)
    return said["text"] if isinstance(said, dict) else said


def structured(model):
    with dspy.context(lm=opened(model), adapter=dspy.JSONAdapter()):
        return dspy.Predict(Describe)(question=CITY).city.model_dump()


ask(plain, None, None, structured)
