"""The official libraries raise their own exceptions for bardo's errors and the providers', before a stream and inside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.gateway import model_of
from support.sdk import Sdk
from support.talk import QUESTION
from surfaces.gateway.cells import whole_and_streamed

LATE = 8


def of_openai(name: str) -> Callable[[], type[Exception]]:
    def find() -> type[Exception]:
        import openai

        found: type[Exception] = getattr(openai, name)
        return found

    return find


def of_anthropic(name: str) -> Callable[[], type[Exception]]:
    def find() -> type[Exception]:
        import anthropic

        found: type[Exception] = getattr(anthropic, name)
        return found

    return find


def of_google(name: str) -> Callable[[], type[Exception]]:
    def find() -> type[Exception]:
        from google.genai import errors

        found: type[Exception] = getattr(errors, name)
        return found

    return find


_NAMES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    413: "APIStatusError",
    429: "RateLimitError",
    500: "InternalServerError",
    503: "APIStatusError",
    529: "APIStatusError",
}
each_status = pytest.mark.parametrize("status", _NAMES)


def raised(sdk: Sdk, expected: type[Exception], model: str, *, stream: bool) -> Any:
    with pytest.raises(expected) as caught:
        sdk.ask(model, sdk.said(QUESTION), stream=stream)
    return caught.value


@each_status
@whole_and_streamed
@pytest.mark.parametrize("provider", ["anthropic", "deepseek"])
@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_a_status_raises_its_class(sdks: dict[str, Sdk], name: str, provider: str, stream: bool, status: int) -> None:
    find = of_anthropic if name == "anthropic_messages" else of_openai
    model = f"{model_of(provider)}+fault:status={status},retry-after=3"
    error = raised(sdks[name], find(_NAMES[status])(), model, stream=stream)
    assert error.status_code == status
    assert error.response.headers["retry-after"] == "3"


@each_status
@whole_and_streamed
@pytest.mark.parametrize("provider", ["anthropic", "deepseek"])
def test_googles_library_raises_its_classes(sdks: dict[str, Sdk], provider: str, stream: bool, status: int) -> None:
    expected = of_google("ClientError" if status < 500 else "ServerError")()
    error = raised(sdks["gemini"], expected, f"{model_of(provider)}+fault:status={status}", stream=stream)
    assert error.code == status
    assert error.status
    assert error.message


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai_responses", "deepseek"])
@pytest.mark.parametrize("fault", [f"error-event,after={LATE}", f"cut,after={LATE}", f"malformed,after={LATE}"])
@pytest.mark.parametrize(
    ("name", "find"),
    [
        ("openai_chat", of_openai("APIError")),
        ("openai_responses", of_openai("APIError")),
        ("anthropic_messages", of_anthropic("APIStatusError")),
        ("gemini", of_google("APIError")),
    ],
)
def test_a_stream_that_breaks_raises_inside_it(
    sdks: dict[str, Sdk], name: str, find: Callable[[], type[Exception]], provider: str, fault: str
) -> None:
    error = raised(sdks[name], find(), f"{model_of(provider)}+fault:{fault}", stream=True)
    assert str(error)


@whole_and_streamed
@pytest.mark.parametrize("name", ["openai_chat", "anthropic_messages"])
def test_bardos_own_error_reaches_the_librarys_user(sdks: dict[str, Sdk], name: str, stream: bool) -> None:
    sdk = sdks[name]
    find = of_anthropic if name == "anthropic_messages" else of_openai
    with pytest.raises(find("BadRequestError")(), match=r"messages\[0\]"):
        sdk.ask("deepseek/m1", [{"role": "user", "content": 5}], stream=stream)
    assert sdk.ask("deepseek/m1", sdk.said(QUESTION), stream=stream).text.strip() == "1161"
