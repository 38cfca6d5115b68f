"""Every call is one row of the inference log, with the right numbers (TM1)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bardo.adapters.config.settings import LogSettings, Settings
from bardo.adapters.stores.log import LogReader
from bardo.server.serving import BackgroundServer
from bardo.simulators import Script, Turn, Usage
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, SECRET, House, entry, house, model_of
from support.patience import PATIENCE
from support.talk import CLIENTS, QUESTION, Answer, ask, request
from surfaces.gateway.cells import SPEAKERS, whole_and_streamed

each_client = pytest.mark.parametrize("client", CLIENTS)
COUNTED = Turn(
    reasoning="Thought.",
    text="Said.",
    usage=Usage(100, 20, 30, cached_input_tokens=40, cache_write_tokens=10),
)


@pytest.fixture(scope="module")
def counting() -> Iterator[House]:
    with house([Simulator(name, script=Script((COUNTED,))) for name in SPEAKERS]) as running:
        yield running


@each_client
@whole_and_streamed
@pytest.mark.parametrize("provider", SPEAKERS)
def test_a_call_is_a_row(counting: House, client: str, provider: str, stream: bool) -> None:
    answer = ask(counting.address, client, model_of(provider), stream=stream, thinks=True)
    row = counting.log.row(answer.headers["x-bardo-request-id"])
    assert (row.outcome, row.status, row.attempts, row.error_class) == ("ok", 200, 1, None)
    assert (row.client_dialect, row.provider, row.streamed) == (client, provider, stream)
    # OpenRouter speaks the dialect of a Messages client too.
    own = client if (provider, client) == ("openrouter", "anthropic_messages") else ""
    assert row.provider_dialect == (own or counting.simulators[provider].provider.dialect)
    assert (row.model_asked, row.model) == (model_of(provider), model_of(provider).removeprefix(f"{provider}/"))
    assert (row.input_tokens, row.output_tokens, row.reasoning_tokens) == (100, 50, 30)
    assert (row.cached_input_tokens, row.tokens_approx) == (40, False)
    assert row.cache_write_tokens in ((10,) if provider in ("anthropic", "openrouter") else (10, 0, None))
    assert row.usage_raw
    assert row.finish_reason == "stop"
    # What Claude shows of its thinking is a summary, wherever it is asked (RC2).
    summarizes = provider in ("anthropic", "openrouter", "gemini", "openai_responses")
    assert row.visibility == ("summarized" if summarizes else "visible")
    assert row.finish_raw
    assert row.receipt is not None
    assert row.receipt["observed"]["reasoning_tokens"] == 30
    assert row.first_byte_seconds is not None
    assert 0 < row.first_byte_seconds <= row.seconds < PATIENCE
    assert (row.request_content, row.reply_content) == (None, None)


def test_many_calls_at_once_are_as_many_rows(counting: House) -> None:
    before = len(counting.log.rows)

    def one(number: int) -> Answer:
        provider = SPEAKERS[number % len(SPEAKERS)]
        return ask(counting.address, CLIENTS[number % 4], model_of(provider), stream=bool(number % 3))

    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(one, range(96)))
    assert {answer.status for answer in answers} == {200}
    ids = {answer.headers["x-bardo-request-id"] for answer in answers}
    assert len(ids) == 96
    assert all(counting.log.row(request_id).output_tokens == 50 for request_id in ids)
    assert len(counting.log.rows) == before + 96


def test_small_endpoints_are_no_calls(counting: House) -> None:
    before = len(counting.log.rows)
    for path in ("/healthz", "/readyz", "/v1/models", "/v1/nothing"):
        request(counting.address, "GET", path)
    assert len(counting.log.rows) == before


@each_client
@whole_and_streamed
def test_content_is_kept_where_it_was_asked_for(client: str, stream: bool) -> None:
    with house([Simulator("deepseek")], keep_content=True) as running:
        answer = ask(running.address, client, "deepseek/m", stream=stream, thinks=True)
        row = running.log.row(answer.headers["x-bardo-request-id"])
        assert QUESTION in str(row.request_content)
        assert "1161" in str(row.reply_content)
        assert "I need to work out" in str(row.reply_content)


@pytest.mark.parametrize("content", [False, True], ids=["content off", "content on"])
def test_the_log_of_a_real_gateway_is_complete_once_it_has_stopped(tmp_path: Path, content: bool) -> None:
    path = tmp_path / "log.db"
    simulator = Simulator("anthropic")
    with simulator.running() as server:
        settings = Settings(
            providers=(entry(simulator, server.base_url),), log=LogSettings(path=str(path), content=content)
        )
        with BackgroundServer(gateway_of(settings, {KEY_VARIABLE: SECRET})) as gateway:
            good = ask(gateway.address, "openai_chat", model_of("anthropic"), stream=True)
            bad = ask(gateway.address, "gemini", "anthropic/m+fault:status=429")
    assert (good.status, bad.status) == (200, 429)
    with LogReader(path) as log:
        rows = {row.outcome: row for row in log.recent(10)}
        assert len(rows) == len(log.recent(10)) == 2
        assert rows["ok"].request_id == good.headers["x-bardo-request-id"]
        assert rows["ok"].reasoning_tokens == 30
        assert (QUESTION in str(rows["ok"].request_content)) is content
        assert (QUESTION in str(rows["ok"].sent_content)) is content
        assert ("1161" in str(rows["ok"].reply_content)) is content
        assert (rows["error"].status, rows["error"].error_class) == (429, "UpstreamRefused")
    assert SECRET.encode() not in path.read_bytes()


def test_a_log_that_is_off_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    simulator = Simulator("anthropic")
    with simulator.running() as server:
        settings = Settings(providers=(entry(simulator, server.base_url),), log=LogSettings(enabled=False))
        with BackgroundServer(gateway_of(settings, {KEY_VARIABLE: SECRET, "XDG_DATA_HOME": str(tmp_path)})) as gateway:
            assert ask(gateway.address, "openai_chat", model_of("anthropic")).status == 200
    assert list(tmp_path.iterdir()) == []
