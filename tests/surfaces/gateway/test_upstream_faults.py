"""Whatever a provider does wrong reaches the client in its own dialect: as a status before the first byte, as an event after it (GW7)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

from bardo.adapters.config.settings import ProviderEntry
from bardo.adapters.net.client import Deadlines
from bardo.adapters.stores.log import LogRow
from support.any_model import Simulator
from support.gateway import SECRET, House, house, model_of
from support.patience import PATIENCE
from support.talk import CLIENTS, Answer, ask
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.refusals import broken, refusal

each_client = pytest.mark.parametrize("client", CLIENTS)
each_speaker = pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai_responses", "deepseek"])
# Late enough that some of the reply has arrived in every dialect.
LATE = 8


def asked(town: House, client: str, provider: str, fault: str, *, stream: bool) -> Answer:
    return ask(town.address, client, f"{model_of(provider)}+fault:{fault}", stream=stream, thinks=True)


def row_of(town: House, provider: str, fault: str, client: str, *, stream: bool) -> LogRow:
    """Return the newest row of such a call."""
    model = f"{model_of(provider)}+fault:{fault}"
    rows = town.log.wait(lambda row: (row.model_asked, row.client_dialect, row.streamed) == (model, client, stream))
    return rows[-1]


@each_client
@each_speaker
@whole_and_streamed
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 529])
def test_a_status_is_kept(town: House, client: str, provider: str, stream: bool, status: int) -> None:
    fault = f"status={status},retry-after=2"
    answer = asked(town, client, provider, fault, stream=stream)
    assert answer.status == status
    assert answer.headers["retry-after"] == "2"
    assert answer.headers["x-bardo-error"] == "upstream_refused"
    assert refusal(client, answer)
    row = row_of(town, provider, fault, client, stream=stream)
    assert (row.outcome, row.status, row.error_class, row.attempts) == ("error", status, "UpstreamRefused", 1)


@each_client
@each_speaker
@whole_and_streamed
@pytest.mark.parametrize("fault", ["slow=0.005", "drip=7"])
def test_a_reply_that_comes_slowly_or_in_crumbs_is_whole(
    town: House, client: str, provider: str, stream: bool, fault: str
) -> None:
    answer = asked(town, client, provider, fault, stream=stream)
    assert answer.status == 200
    assert "1161" in answer.text
    assert row_of(town, provider, fault, client, stream=stream).outcome == "ok"


# What breaks a whole reply, and a stream before its first byte: the fault, and what it is called.
BEFORE = {
    "disconnect": "BrokenStream",
    "reset": "BrokenStream",
    "content-type": "MalformedReply",
}


@each_client
@each_speaker
@whole_and_streamed
@pytest.mark.parametrize("fault", BEFORE)
def test_a_reply_that_never_begins_is_a_502(town: House, client: str, provider: str, stream: bool, fault: str) -> None:
    answer = asked(town, client, provider, fault, stream=stream)
    assert answer.status == 502
    assert refusal(client, answer)
    row = row_of(town, provider, fault, client, stream=stream)
    assert (row.outcome, row.error_class) == ("error", BEFORE[fault])


@each_client
@each_speaker
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("cut", "BrokenStream"),
        ("early-end", "MalformedReply"),
        ("malformed", "MalformedReply"),
        ("lying", "MalformedReply"),
        ("oversized=9000000", "MalformedReply"),
        ("error-event", "UpstreamRefused"),
    ],
)
def test_a_whole_reply_that_is_broken_is_an_error(
    town: House, client: str, provider: str, fault: str, said: str
) -> None:
    answer = asked(town, client, provider, fault, stream=False)
    assert answer.status >= 500
    assert refusal(client, answer)
    row = row_of(town, provider, fault, client, stream=False)
    assert (row.outcome, row.error_class) == ("error", said)


@each_client
@each_speaker
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("cut", "BrokenStream"),
        ("early-end", "BrokenStream"),
        ("malformed", "MalformedReply"),
        ("error-event", "UpstreamRefused"),
    ],
)
def test_a_stream_that_breaks_ends_with_an_error_event(
    town: House, client: str, provider: str, kind: str, said: str
) -> None:
    fault = f"{kind},after={LATE}"
    answer = asked(town, client, provider, fault, stream=True)
    assert broken(client, answer)
    assert "I need" in answer.text, "what came before the break stands"
    row = row_of(town, provider, fault, client, stream=True)
    assert (row.outcome, row.error_class) == ("broken", said)


@each_client
@each_speaker
def test_a_page_that_says_it_is_a_stream_is_an_error(town: House, client: str, provider: str) -> None:
    answer = asked(town, client, provider, "lying", stream=True)
    assert answer.status == 502
    assert refusal(client, answer)


def test_an_oversized_event_breaks_the_stream(town: House) -> None:
    fault = f"oversized=34000000,after={LATE}"
    answer = asked(town, "openai_chat", "anthropic", fault, stream=True)
    assert "over 33554432 bytes" in broken("openai_chat", answer)
    assert row_of(town, "anthropic", fault, "openai_chat", stream=True).outcome == "broken"


STALL = f"stall,after={LATE}"
STALLING = ("anthropic", "deepseek")


@pytest.fixture(scope="module")
def stalled() -> Iterator[tuple[House, dict[tuple[str, str, bool], Answer]]]:
    """A gateway over providers that stall, and what it answered, asked all at once: each answer takes its time."""
    # Far longer than a busy machine takes between two pieces that are sent without a pause.
    deadlines = Deadlines(connect=PATIENCE, first_byte=PATIENCE, idle=3)
    cells = list(product(CLIENTS, STALLING, (False, True)))
    with house([Simulator(name) for name in STALLING], deadlines=deadlines) as running:
        with ThreadPoolExecutor(len(cells)) as together:
            answers = together.map(lambda cell: asked(running, cell[0], cell[1], STALL, stream=cell[2]), cells)
        yield running, dict(zip(cells, answers, strict=True))


@each_client
@whole_and_streamed
@pytest.mark.parametrize("provider", STALLING)
def test_a_reply_that_stalls_is_a_timeout(
    stalled: tuple[House, dict[tuple[str, str, bool], Answer]], client: str, provider: str, stream: bool
) -> None:
    running, answers = stalled
    answer = answers[client, provider, stream]
    if stream:
        assert "stopped sending for 3 s" in broken(client, answer)
    else:
        assert answer.status == 504
        assert "stopped sending for 3 s" in refusal(client, answer)
    row = row_of(running, provider, STALL, client, stream=stream)
    assert (row.outcome, row.error_class) == ("broken" if stream else "error", "UpstreamTimeout")


@each_client
@whole_and_streamed
def test_a_provider_that_cannot_be_reached_is_a_502(client: str, stream: bool) -> None:
    with Simulator("deepseek", fault=None).running() as server:
        gone = server.base_url
    with house(before=[ProviderEntry(id="gone", preset="vllm", base_url=gone)]) as running:
        answer = ask(running.address, client, "gone/m1", stream=stream)
        assert answer.status == 502
        assert "refuses connections" in refusal(client, answer)
        assert answer.headers["x-bardo-error"] == "unreachable"


def test_after_every_fault_bardo_still_serves_and_has_kept_its_secrets(
    town: House, caplog: pytest.LogCaptureFixture
) -> None:
    for client in CLIENTS:
        for provider in ("anthropic", "gemini", "openai_responses", "deepseek"):
            assert ask(town.address, client, model_of(provider)).status == 200
    assert SECRET not in repr(town.log.rows)
    assert SECRET not in caplog.text
