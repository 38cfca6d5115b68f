"""google-adk with its model Gemini."""

import json

from google import genai
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types
from modes import ADDRESS, CITY, QUESTION, WEATHER, ask, sunny
from pydantic import BaseModel


class City(BaseModel):
    name: str
    population: int


def weather(city: str) -> str:
    """Tell the weather."""
    return sunny(city)


class Served(Gemini):
    """Gemini at another address, under any model's name."""

    @property
    def api_client(self):
        return genai.Client(api_key="any", http_options={"base_url": ADDRESS})


async def run(model, text, streaming=StreamingMode.NONE, **more):
    """Run an agent to its end, and return its events."""
    runner = InMemoryRunner(LlmAgent(name="one", model=Served(model=model), **more), app_name="one")
    session = await runner.session_service.create_session(app_name="one", user_id="any")
    content = types.Content(role="user", parts=[types.Part(text=text)])
    events = runner.run_async(
        user_id="any", session_id=session.id, new_message=content, run_config=RunConfig(streaming_mode=streaming)
    )
    found = [event async for event in events]
    if problem := next((one for one in found if one.error_code), None):
        raise RuntimeError(problem.error_message)
    return found


def text_of(event):
    parts = event.content.parts if event.content and event.content.parts else []
    return "".join(part.text or "" for part in parts if not part.thought)


async def plain(model):
    return text_of((await run(model, QUESTION))[-1])


async def stream(model):
    events = await run(model, QUESTION, StreamingMode.SSE)
    return [text_of(event) for event in events if event.partial and text_of(event)]


async def tools(model):
    thinking = types.ThinkingConfig(thinking_budget=2048, include_thoughts=True)
    config = types.GenerateContentConfig(thinking_config=thinking)
    events = await run(model, WEATHER, StreamingMode.SSE, tools=[weather], generate_content_config=config)
    return text_of(events[-1])


async def structured(model):
    return json.loads(text_of((await run(model, CITY, output_schema=City))[-1]))


ask(plain, stream, tools, structured)
