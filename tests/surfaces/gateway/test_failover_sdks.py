"""The official libraries, unmodified, see one good answer where the first provider fails, and one error where nobody answers."""

from __future__ import annotations

from contextlib import closing

import pytest

from bardo.adapters.config.routing import FailoverSettings
from bardo.services.facts.failover import Failover
from bardo.simulators import Fault
from support.any_model import Simulator
from support.gateway import house
from support.patience import PATIENCE
from support.sdk import SDKS
from support.talk import QUESTION
from surfaces.gateway.cells import whole_and_streamed

MODEL = "shared-model"
FAULTS = ("status=401", "status=529", "error-body=500", "cut=0", "keep-alive=0", "disconnect")
each_library = pytest.mark.parametrize("library", SDKS)


@each_library
@pytest.mark.parametrize("fault", FAULTS)
def test_a_library_gets_the_answer_of_the_second_provider(library: str, fault: str) -> None:
    settings = FailoverSettings(
        backoff_seconds=0.01, first_token_seconds=1.0, first_token_seconds_at={"groq": PATIENCE}
    )
    toml = f'[aliases]\n{MODEL} = ["anthropic/m+fault:{fault}", "groq/m"]'
    simulators = [Simulator("anthropic"), Simulator("groq")]
    with house(simulators, failover=Failover(settings), toml=toml) as running:
        with closing(SDKS[library](running.address)) as sdk:
            heard = sdk.ask(MODEL, sdk.said(QUESTION), stream=True, reasoning=False)
        assert "1161" in heard.text
        assert heard.stop == sdk.stops[0]
        row = running.log.of_model(MODEL)
        assert (row.outcome, row.provider, row.attempt_records[-1].cause) == ("ok", "groq", "failover")


@each_library
@whole_and_streamed
def test_a_library_raises_once_where_nobody_answers(library: str, stream: bool) -> None:
    settings = FailoverSettings(backoff_seconds=0.01)
    with house([Simulator("groq", fault=Fault("status", status=400))], failover=Failover(settings)) as running:
        with closing(SDKS[library](running.address)) as sdk, pytest.raises(Exception, match="request was invalid"):
            sdk.ask("groq/m", sdk.said(QUESTION), stream=stream, reasoning=False)
        assert running.log.of_model("groq/m").attempts == 1
