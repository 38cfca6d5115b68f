"""`bardo catalog refresh` and `bardo catalog diff`, against simulated providers on real sockets."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from bardo.simulators import Fault
from support.any_model import Simulator
from surfaces.cli.support import bardo, simulated


def test_a_list_is_refreshed_shown_and_drawn_on_offline(folder: Path) -> None:
    simulator = Simulator("venice", models=["qwen3-5-9b", "e2ee-glm-5"])
    with simulated(simulator, folder=folder):
        diff = bardo("catalog", "diff")
        assert diff.code == 0
        assert "e2ee-glm-5" in diff.out
        assert "2 models, 2 with prices; 2 would change" in diff.err
        assert not list(folder.rglob("venice-*.json"))
        ran = bardo("catalog", "refresh")
        assert (ran.code, ran.err) == (0, "venice: 2 models, 2 with prices; 2 changed\n")
        assert len(list(folder.rglob("venice-*.json"))) == 1
        again = bardo("catalog", "diff", "venice", "--json")
        assert again.json[0]["changes"] == []
    shown = bardo("catalog", "show", "e2ee-glm-5", "--provider", "venice", "--offline")
    told = bardo("catalog", "show", "e2ee-glm-5", "--provider", "venice", "--offline", "--json").json
    assert "input $0.1/M, output $0.15/M; context 256,000" in " ".join(shown.out.split())
    assert (told["listing"]["source"], told["listing"]["features"]["tee"]) == ("venice", True)
    assert told["listing"]["price"]["input"] == 100_000_000
    facts = told["facts"]["efforts"]
    assert (facts["layer"], facts["date"]) == ("listing", told["listing"]["date"])


def test_a_list_that_cannot_be_had_says_what_holds_and_fails(folder: Path) -> None:
    with simulated(Simulator("venice", fault=Fault("status", status=500)), folder=folder):
        ran = bardo("catalog", "refresh")
        told = bardo("catalog", "refresh", "--json")
    assert ran.code == told.code == 1
    assert ran.err == "venice: its list answered with status 500; the catalog's rows hold\n"
    assert told.json[0]["problem"] == "its list answered with status 500"


def test_a_list_that_looks_wrong_is_taken_over_on_demand(folder: Path) -> None:
    many = Simulator("venice", models=[f"m{place}" for place in range(9)])
    with simulated(many, folder=folder) as (server,):
        assert bardo("catalog", "refresh").code == 0
    port = urlsplit(server.base_url).port
    assert port is not None
    with Simulator("venice", models=["m0"]).running(port=port):
        refused = bardo("catalog", "refresh")
        assert refused.code == 1
        assert "8 of 9 models are missing" in refused.err
        assert "--accept" in refused.err
        assert bardo("catalog", "show", "m8", "--provider", "venice", "--offline", "--json").json["listing"]["listed"]
        assert bardo("catalog", "refresh", "--accept").code == 0
        assert not bardo("catalog", "show", "m8", "--provider", "venice", "--offline", "--json").json["listing"][
            "listed"
        ]


def test_mistakes_name_what_to_write(folder: Path) -> None:
    nothing = bardo("catalog", "refresh")
    assert nothing.code == 2
    assert "name one of openrouter, blockrun, venice" in nothing.err
    assert "has no list that is read" in bardo("catalog", "refresh", "groq").err
    assert "only refresh accepts" in bardo("catalog", "diff", "venice", "--accept").err
    assert "nothing else takes a name" in bardo("catalog", "formats", "venice").err
