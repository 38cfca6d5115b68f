"""`bardo.toml` and the environment: what they say, and errors that name the line and the fix."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pytest

from bardo import reuse
from bardo.adapters.config.environment import reuse_in, with_environment
from bardo.adapters.config.secrets import secrets_of
from bardo.adapters.config.settings import (
    ProviderEntry,
    Settings,
    default_log_path,
    load_settings,
    log_path,
    parse_settings,
    provider_of,
    state_path,
)
from bardo.catalog.rows import DialectName
from bardo.dialects import dialect
from bardo.values.blocks import TextBlock
from bardo.values.errors import ConfigError
from bardo.values.request import Message, Request
from bardo.wiring import assemble
from support.offenders import each_case

pytestmark = pytest.mark.each_python

CONTRACT = """
[gateway]
host = "127.0.0.1"
port = 8484

[[providers]]              # ordered: the first that can satisfy an intent is used
id = "lab"                 # any name
preset = "vllm"            # a provider row of the catalog
base_url = "http://127.0.0.1:8000/v1"
api_key_env = "LAB_KEY"    # optional; a key never stands in the file
models = ["deepseek-r1"]   # optional; else discovered
"""


def test_no_file_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings(environment={})
    assert settings == Settings()
    assert (settings.gateway.host, settings.gateway.port, settings.log.content) == ("127.0.0.1", 8484, False)


def test_the_documented_file_is_read() -> None:
    settings = parse_settings(CONTRACT)
    lab = provider_of(settings.providers[0])
    assert (lab.id, lab.row.id, lab.base_url) == ("lab", "vllm", "http://127.0.0.1:8000/v1")
    assert (lab.row.key_variables, lab.models, lab.configured_models) == (("LAB_KEY",), ("deepseek-r1",), True)


def test_every_key_can_be_given() -> None:
    settings = parse_settings(
        """
        [gateway]
        host = "0.0.0.0"
        port = 0
        workers = 2
        max_body_bytes = 1000
        max_reply_bytes = 2000
        [timeouts]
        connect = 1
        first_byte = 2.5
        idle = 3
        [log]
        enabled = false
        path = "here.db"
        content = true
        [[providers]]
        id = "own"
        dialect = "anthropic_messages"
        base_url = "https://example.org/v1"
        models = []
        [providers.headers]
        X-Team = "a"
        """
    )
    assert (settings.gateway.workers, settings.timeouts.first_byte, settings.log.path) == (2, 2.5, "here.db")
    own = provider_of(settings.providers[0])
    assert own.row.dialect == "anthropic_messages"
    assert own.row.headers["x-team"] == "a"
    assert own.configured_models


def test_the_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, port in (("bardo.toml", 1), ("named.toml", 2), ("given.toml", 3)):
        (tmp_path / name).write_text(f"[gateway]\nport = {port}\n")
    named = {"BARDO_CONFIG": str(tmp_path / "named.toml")}
    assert load_settings(environment={}).gateway.port == 1
    assert load_settings(environment=named).gateway.port == 2
    assert load_settings(tmp_path / "given.toml", environment=named).gateway.port == 3


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "bardo.toml"
    file.write_text('[gateway]\nport = 1\nhost = "a"\n[log]\npath = "file.db"\ncontent = true\n')
    environment = {"BARDO_PORT": "2", "BARDO_HOST": "b", "BARDO_WORKERS": "3", "BARDO_LOG_PATH": "~/env.db"}
    settings = load_settings(file, environment=environment)
    assert (settings.gateway.port, settings.gateway.host, settings.gateway.workers) == (2, "b", 3)
    assert (settings.log.path, settings.log.content, settings.source) == ("~/env.db", True, str(file))
    assert load_settings(file, environment={"BARDO_PORT": ""}).gateway.port == 1


@pytest.mark.parametrize("value", ["many", "1.5", "-1", "70000"])
def test_a_wrong_environment_variable_is_named(value: str, tmp_path: Path) -> None:
    file = tmp_path / "bardo.toml"
    file.write_text("")
    with pytest.raises(ConfigError, match=f"BARDO_PORT is '{value}'.*whole number"):
        load_settings(file, environment={"BARDO_PORT": value})


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*missing\.toml.*give --config another path"):
        load_settings(tmp_path / "missing.toml", environment={})
    with pytest.raises(ConfigError, match="cannot read"):
        load_settings(environment={"BARDO_CONFIG": str(tmp_path)})
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot read"):
        load_settings(tmp_path / "binary.toml", environment={})


ADDRESS = '[[providers]]\nid = "a"\npreset = "vllm"\nbase_url = "{}"'
TWO = '[[providers]]\nid = "one"\npreset = "vllm"\nmodels = ["a"]\n\n[[providers]]\nid = "two"\npreset = "vllm"\n'
FORMAT = '\n[[reasoning_formats]]\nname = "lab"\nstart = "[["\nend = "]]"\n'
MISTAKES: dict[str, tuple[str, str, str]] = {
    "no TOML": ("[gateway\nport = 1", "line 1", "not valid TOML"),
    "a text for a number": ('\n[gateway]\nport = "8484"', "line 3", "gateway.port .*a whole number"),
    "a number for a text": ("[log]\npath = 5", "line 2", "log.path .*text in quotes"),
    "a text for a switch": ('[log]\ncontent = "yes"', "line 2", "log.content .*true or false"),
    "a port too high": ("[gateway]\nport = 70000", "line 2", "at most 65535"),
    "no worker": ("[gateway]\nworkers = 0", "line 2", "at least 1"),
    "no time": ("[timeouts]\nidle = 0", "line 2", "greater than 0"),
    "an unknown table": ('[log]\npath = ""\n[gatway]\nport = 1', "line 3", "did you mean 'gateway'"),
    "an unknown key": ("[gateway]\nprot = 1", "line 2", "did you mean 'port'"),
    "a key of another table": ("[timeouts]\nzzzzz = 1", "line 2", "known keys: "),
    "a table that is none": ("gateway = 5", "line 1", "a table of keys"),
    "a dotted key": ('gateway.host = "a"\ngateway.port = "b"', "line 2", "a whole number"),
    "an inline table": ('gateway = { port = "b" }', "line 1", "a whole number"),
    "providers as a table": ('[providers]\nid = "a"', "line 1", r"write \[\[providers\]\] with two"),
    "a provider without an id": ('[[providers]]\npreset = "vllm"', "line 1", "'id' is missing .*add id"),
    "the second one's models": (TWO + 'models = "a"\n', "line 9", r"models .*a list"),
    "one of its models": (TWO + "models = [1]\n", "line 9", "text in quotes"),
    "its unknown key": (TWO + 'modles = ["a"]\n', "line 9", "did you mean 'models'"),
    "its headers": (TWO + "[providers.headers]\nx = 1\n", "line 9", "text in quotes"),
    "its dialect": (TWO + 'dialect = "openai"\n', "line 9", "use one of .*openai_chat"),
    "its preset": (TWO.replace('preset = "vllm"\n', 'preset = "vlm"\n', 1), "line 3", "did you mean .*vllm"),
    "an id that is no preset": ('[[providers]]\nid = "opnai"', "line 2", "did you mean .*openai"),
    "no preset at all": ('[[providers]]\nid = "zzzzzzzz"', "line 2", "or another preset of `bardo catalog`"),
    "no address": ('[[providers]]\nid = "a"\npreset = "openai-compatible"', "line 1", "give its http"),
    "a wrong address": (
        '[[providers]]\nid = "a"\npreset = "vllm"\nbase_url = "ftp://x"',
        "line 4",
        "give its http",
    ),
    "an address with a bracket": (ADDRESS.format("http://[us]er@x/v1"), "line 4", "give its http"),
    "an address without a host": (ADDRESS.format("http:///v1"), "line 4", "give its http"),
    "an address with a wrong port": (ADDRESS.format("http://x:99999/v1"), "line 4", "give its http"),
    "the same id twice": (TWO.replace('"two"', '"one"'), "line 7", "'one' .*unique"),
    "an empty id": ('[[providers]]\nid = ""\npreset = "vllm"', "line 2", "not empty"),
    "an id with a slash": ('[[providers]]\nid = "a/b"\npreset = "vllm"', "line 2", "no slash"),
    "formats as a table": ('[reasoning_formats]\nname = "a"', "line 1", r"write \[\[reasoning_formats\]\] with two"),
    "a format without a name": (FORMAT.replace('name = "lab"\n', ""), "line 2", "'name' is missing .*add name"),
    "a format without an end": (FORMAT.replace('end = "]]"\n', ""), "line 2", "no 'end' .*add end"),
    "a format without a start": (FORMAT.replace('start = "[["\n', ""), "line 2", "no 'start' .*add start"),
    "a format's unknown key": (FORMAT + 'pattern = "x"\n', "line 6", "did you mean 'patterns'"),
    "its patterns": (FORMAT + 'patterns = "x"\n', "line 6", "patterns .*a list"),
    "its empty pattern": (FORMAT + 'patterns = [""]\n', "line 6", "empty pattern .*write"),
    "its blocks": (FORMAT + 'blocks = "many"\n', "line 6", 'use one of "single", "multi"'),
    "where its replies start": (FORMAT + 'starts_inside = "no"\n', "line 6", 'use one of true, false, "prompt"'),
    "its empty name": (FORMAT.replace('"lab"', '" "'), "line 3", "name is empty"),
    "the same format twice": (FORMAT + FORMAT.replace("lab", "LAB"), "line 8", "'LAB' .*unique"),
    "the second format's end": (
        FORMAT + FORMAT.replace("lab", "b").replace('"]]"', "3"),
        "line 10",
        "end .*text in quotes",
    ),
    "a key in the file": (
        '[[providers]]\nid = "openai"\napi_key = "sk-1"',
        "line 3",
        "export OPENAI_API_KEY=….*api_key_env",
    ),
}


@pytest.mark.parametrize(("text", "line", "fix"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_names_its_line_and_the_fix(text: str, line: str, fix: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){fix}") as caught:
        parse_settings(text, "my.toml")
    assert "my.toml" in caught.value.message
    assert re.search(rf"{line}\b", str(caught.value))
    assert caught.value.hint
    assert "sk-1" not in str(caught.value)


def test_formats_are_read_with_the_keys_of_the_built_in_rows() -> None:
    text = FORMAT + 'patterns = ["lab-"]\nstarts_inside = "prompt"\n\n[[reasoning_formats]]\nname = "as_it_is"\n'
    lab, as_it_is = parse_settings(text).reasoning_formats
    assert (lab.starts, lab.ends, lab.patterns, lab.starts_inside) == (("[[",), ("]]",), ("lab-",), "prompt")
    assert (as_it_is.name, as_it_is.starts) == ("as_it_is", ())


def entry(**fields: str) -> str:
    return "[[providers]]\n" + "".join(f'{name} = "{value}"\n' for name, value in fields.items())


@pytest.mark.parametrize(
    ("text", "row", "address", "keys"),
    [
        (entry(id="openai"), "openai", "https://api.openai.com/v1", ("OPENAI_API_KEY",)),
        (entry(id="work", preset="openai"), "openai", "https://api.openai.com/v1", ("OPENAI_API_KEY",)),
        (entry(id="work", preset="openai", api_key_env="W"), "openai", "https://api.openai.com/v1", ("W",)),
        (entry(id="google"), "gemini", "https://generativelanguage.googleapis.com/v1beta", None),
        # The vendor's key must not travel to somebody else's address.
        (entry(id="proxy", preset="openai", base_url="http://h/v1"), "openai", "http://h/v1", ()),
        (entry(id="proxy", preset="openai", base_url="http://h/v1", api_key_env="P"), "openai", "http://h/v1", ("P",)),
        (entry(id="openai", base_url="https://api.openai.com/v1/"), "openai", None, ("OPENAI_API_KEY",)),
        (entry(id="any", dialect="openai_chat", base_url="http://h"), "openai-compatible", "http://h", ()),
        (entry(id="any", dialect="openai_responses", base_url="http://h"), "responses-compatible", "http://h", ()),
        (entry(id="any", dialect="anthropic_messages", base_url="http://h"), "anthropic", "http://h", ()),
        (entry(id="any", dialect="gemini", base_url="http://h"), "gemini", "http://h", ()),
    ],
)
def test_an_entry_becomes_a_provider(text: str, row: str, address: str | None, keys: tuple[str, ...] | None) -> None:
    found = provider_of(parse_settings(text).providers[0])
    assert found.row.id == row
    assert address in (None, found.base_url)
    assert keys in (None, found.row.key_variables)


def test_a_dialect_may_differ_from_the_presets() -> None:
    text = entry(id="x", preset="vllm", dialect="openai_responses")
    assert provider_of(parse_settings(text).providers[0]).row.dialect == "openai_responses"


@pytest.mark.parametrize(
    ("text", "serves"),
    [
        (entry(id="openai", base_url="http://h/v1"), True),
        (entry(id="x", preset="openai", base_url="http://h/v1"), True),
        (entry(id="openai", dialect="openai_responses", base_url="http://h/v1"), True),
        (entry(id="openai", dialect="openai_chat", base_url="http://h/v1"), True),
        (entry(id="openai", dialect="gemini", base_url="http://h/v1"), False),
        (entry(id="x", dialect="openai_responses", base_url="http://h/v1"), False),
    ],
    ids=[
        "the id is a preset",
        "a preset is named",
        "with its own dialect",
        "with that of another endpoint",
        "with a dialect that it has not",
        "only a dialect",
    ],
)
def test_a_preset_keeps_its_models_at_another_address_and_a_dialect_has_none(text: str, serves: bool) -> None:
    assert provider_of(parse_settings(text).providers[0]).row.serves("gpt-5") == serves


@pytest.mark.parametrize("dialect", get_args(DialectName))
def test_every_dialect_that_may_be_written_makes_a_provider(dialect: str) -> None:
    found = provider_of(parse_settings(entry(id="own", dialect=dialect, base_url="http://h/v1")).providers[0])
    assert (found.row.dialect, found.base_url, found.row.key_variables) == (dialect, "http://h/v1", ())
    assert not found.row.models


KEYS = [
    "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789",
    "gsk_abcdefghijklmnopqrstuvwxyz0123456789abcd",
    "hf_abcdefghijklmnopqrstuv7",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
    "A1B2C3D4E5F6A7B8C9D0E1F2A3B4C5D6",
    "AIzaSyA1234567890abcdefghijklmnopqrstu",
    "3f2504e04f8911d39a0c0305e82c3301",
    "$OPENAI_API_KEY",
    "OPENAI API KEY",
    "OPENAI_API_KEY=sk-1",
    "1KEY",
    "clé",
]


@pytest.mark.parametrize(
    ("said", "keeps"),
    [({}, None), ({"BARDO_REUSE": ""}, None), ({"BARDO_REUSE": "on"}, True), ({"BARDO_REUSE": "off"}, False)],
)
def test_the_environment_says_whether_anything_is_kept_of_earlier_requests(
    said: dict[str, str], keeps: bool | None
) -> None:
    assert reuse_in(said) is keeps


@pytest.mark.parametrize("said", ["0", "OFF", "none"])
def test_another_word_for_keeping_nothing_is_refused(said: str) -> None:
    with pytest.raises(ConfigError, match=f"BARDO_REUSE is '{said}'.*on or off"):
        reuse_in({"BARDO_REUSE": said})


def test_an_engine_keeps_nothing_of_earlier_requests_where_its_environment_says_so(tmp_path: Path) -> None:
    before = reuse.is_on()
    own = {"XDG_DATA_HOME": str(tmp_path)}
    try:
        for said in ("off", "on"):
            asyncio.run(assemble(Settings(), environment={**own, "BARDO_REUSE": said}).close())
            assert reuse.is_on() is (said == "on")
        reuse.turn(False)
        asyncio.run(assemble(Settings(), environment=own).close())
        assert not reuse.is_on()
    finally:
        reuse.turn(before)


@pytest.mark.parametrize("value", KEYS)
def test_a_key_in_the_place_of_its_variable_is_refused_and_never_repeated(value: str) -> None:
    with pytest.raises(ConfigError, match="export WORK_API_KEY=") as caught:
        parse_settings(entry(id="work", dialect="openai_chat", base_url="http://h/v1", api_key_env=value), "my.toml")
    assert caught.value.message.startswith("my.toml, line 5: api_key_env of provider 'work'")
    assert value not in str(caught.value)
    with pytest.raises(ConfigError, match="is not the name"):
        provider_of(ProviderEntry(id="openai", api_key_env=value))


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "_KEY", "my_key", "Key2", "COMPANY_OPENAI_KEY_FOR_TEAM_42_IN_EUROPE"]
)
def test_a_variables_name_is_taken(name: str) -> None:
    assert provider_of(ProviderEntry(id="openai", api_key_env=name)).row.key_variables == (name,)


@pytest.mark.parametrize("key", ["api_key", "apikey", "key", "token", "secret", "authorization", "api-key"])
def test_who_writes_a_key_is_told_how_to_export_it(key: str) -> None:
    with pytest.raises(ConfigError, match=r"unknown key .*export") as caught:
        parse_settings(f'[[providers]]\nid = "openai"\n{key} = "sk-recognisable"\n', "my.toml")
    assert "sk-recognisable" not in str(caught.value)


def test_secrets_in_a_table_are_found_by_their_place() -> None:
    found = secrets_of(
        ProviderEntry(
            id="x",
            base_url="https://me:pw@h/v1?key=abc",
            headers={
                "Authorization": "Bearer a",
                "X-Team": "red",
                "X-Odd": "sk-abcdefghijklmn0123456789",
                "x-session": "1",
            },
        )
    )
    assert found == [
        "headers.Authorization",
        "headers.X-Odd",
        "headers.x-session",
        "the user and password of base_url",
        "the query of base_url",
    ]
    assert secrets_of(ProviderEntry(id="x", base_url="https://h/v1", headers={"X-Team": "research-eu-west-2"})) == []


def test_the_log_stands_in_the_users_data_folder() -> None:
    assert default_log_path({"XDG_DATA_HOME": "/data"}) == Path("/data/bardo/log.db")
    assert default_log_path({}) == Path.home() / ".local" / "share" / "bardo" / "log.db"


WATSONX = """
[[providers]]
id = "ibm"
preset = "watsonx"
base_url = "https://us-south.ml.cloud.ibm.com/ml/v1"
scope = { project_id = "p1" }
"""


def test_a_call_to_watsonx_names_the_configured_project() -> None:
    provider = provider_of(parse_settings(WATSONX).providers[0])
    request = Request(model="m", messages=(Message("user", (TextBlock("hi"),)),), dialect="openai_chat")
    wire = dialect(provider.row.dialect).encode_request(request, provider.row)
    assert json.loads(wire.body) == {"model_id": "m", "input": "hi", "project_id": "p1"}


@pytest.mark.parametrize(
    ("preset", "field", "hint"),
    [("watsonx", "project", "project_id or space_id"), ("vllm", "project_id", "takes none")],
)
def test_a_scope_that_requests_do_not_have_is_refused(preset: str, field: str, hint: str) -> None:
    text = WATSONX.replace('"watsonx"', f'"{preset}"').replace("project_id", field)
    with pytest.raises(ConfigError, match=f"scope has no field '{field}'") as caught:
        provider_of(parse_settings(text).providers[0])
    assert hint in str(caught.value)


def is_table(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


@each_case("name", [name for name, hint in get_type_hints(Settings).items() if is_table(hint)])
def test_every_table_of_the_settings_is_read_from_the_file(name: str) -> None:
    assert getattr(parse_settings(f"[{name}]"), name) == getattr(Settings(), name)


def test_telemetry_is_read() -> None:
    read = parse_settings(
        '[telemetry]\nmetrics = true\notlp = "http://127.0.0.1:4318"\nservice = "s"\nlogs = "json"'
    ).telemetry
    assert (read.metrics, read.otlp, read.service, read.logs) == (True, "http://127.0.0.1:4318", "s", "json")


def test_the_log_may_stand_in_a_database_whose_address_a_variable_holds() -> None:
    address = "postgresql://bardo:secret@db/bardo"
    settings = parse_settings('[log]\nurl_env = "LOG_DATABASE"\n')
    assert log_path(settings, {"LOG_DATABASE": address}) == address
    assert state_path(settings, {"LOG_DATABASE": address}) == address, "keys stand where the log is"
    with pytest.raises(ConfigError, match="LOG_DATABASE, which holds the address of a database, is not set"):
        log_path(settings, {})
    assert log_path(parse_settings(f'[log]\nurl = "{address}"\n'), {}) == address


def test_the_log_stands_at_one_place() -> None:
    with pytest.raises(ConfigError, match="another name a place for the log"):
        parse_settings('[log]\npath = "log.db"\nurl = "postgresql://db/bardo"\n')


@pytest.mark.parametrize(
    ("variable", "value"), [("BARDO_LOG_PATH", "/data/log.db"), ("BARDO_LOG_URL", "postgresql://db/x")]
)
def test_the_place_in_the_environment_takes_that_of_the_file(variable: str, value: str) -> None:
    for text in ('path = "a.db"', 'url = "postgresql://db/a"', 'url_env = "NOT_SET"'):
        settings = with_environment(parse_settings(f"[log]\n{text}\n"), {variable: value})
        assert str(log_path(settings, {})) == value
