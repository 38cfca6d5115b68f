"""What people write into `bardo.toml` by mistake: each answered with its line and what to write instead, several at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bardo.adapters.config import mistakes
from bardo.adapters.config.accounts import checked_globs
from bardo.adapters.config.settings import load_settings, parse_settings
from bardo.values.errors import ConfigError, InvalidRequest
from surfaces.cli.support import bardo

ONE = [
    ('[providers.openai]\nmodels = ["a"]', 1, 'write [[providers]] and below it id = "openai"'),
    ('[log]\ncontent = true\n[models."qwen*"]\nomit = "on"', 3, 'match = ["qwen*"]'),
    ("[server]\nport = 1", 1, "write [gateway]"),
    ("[logging]\nenabled = true", 1, "write [log]"),
    ('[[provider]]\nid = "openai"', 1, "write [[providers]]"),
    ("[structured_outputs]\nmax_retries = 1", 1, "write [inference.structured_outputs]"),
    ("port = 8484", 1, "write it below [gateway]"),
    ("[gateway]\nidle = 3", 2, "write it below [timeouts]"),
    ("[reasoning]\nhigh = 3", 2, "write it below [reasoning.budgets]"),
    ("[reasoning.budgets]\nhihg = 3", 2, "did you mean 'high'?"),
    ("providers = 5", 1, "write [[providers]]"),
    ("[gateway]\nhost = localhost", 2, "texts stand in quotes"),
    ("[log]\ncontent = True", 2, "small letters"),
    ('[log]\npath = "C:\\logs"', 2, "single quotes"),
    ("[log]\nenabled = true\n[log]\ncontent = true", 3, "join them"),
    ("[log]\ncontent = true\ncontent = true\n", 3, "keep one"),
    ('[providers.openai]\nmodels = ["a"]\n[[providers]]\nid = "x"', 3, "providers are written [[providers]]"),
]


@pytest.mark.parametrize(("text", "line", "fix"), ONE)
def test_a_mistake_is_answered_with_its_line_and_the_fix(text: str, line: int, fix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text, "my.toml")
    assert f"line {line}" in caught.value.message
    assert fix in caught.value.hint
    assert not caught.value.problems


MANY = """\
[gateway]
prot = 1
workers = "two"

[server]
host = "a"

[[providers]]
id = "opnai"

[[providers]]
id = "lab"
preset = "vllm"
modles = ["a"]
api_key = "sk-recognisable"

[[models]]
match = ["a"]
omit = "perhaps"
"""


def test_several_mistakes_are_told_at_once_in_the_files_order() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(MANY, "my.toml")
    lines = [problem.message.partition(":")[0] for problem in caught.value.problems]
    assert lines == [f"my.toml, line {line}" for line in (2, 3, 5, 9, 14, 15, 19)]
    assert all(problem.hint for problem in caught.value.problems)
    assert caught.value.message.startswith("my.toml has 7 mistakes:\n  my.toml, line 2: unknown key 'prot'")
    assert "sk-recognisable" not in str(caught.value)


def test_the_doctor_lists_each_mistake(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(MANY)
    ran = bardo("doctor", "--config", str(tmp_path / "my.toml"), "--json")
    wrong = [one for one in ran.json["findings"] if one["status"] == "problem"]
    assert (ran.code, len(wrong)) == (1, 7)
    assert "did you mean 'port'?" in wrong[0]["fix"]


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_bytes(b"\xef\xbb\xbf[gateway]\r\nport = 7\r\n")
    assert load_settings(tmp_path / "my.toml", {}).gateway.port == 7
    assert parse_settings("\ufeff[gateway]\nport = 7\n").gateway.port == 7


def test_a_file_in_another_encoding_is_said(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("[gateway]\nport = 7\n", encoding="utf-16")
    with pytest.raises(ConfigError, match=r"not UTF-8 .save it as UTF-8"):
        load_settings(tmp_path / "my.toml", {})


@pytest.mark.parametrize("value", ["Bearer $LAB_KEY", "${LAB_KEY}", "{env:LAB_KEY}", "os.environ/LAB_KEY"])
def test_a_header_that_names_a_variable_is_refused(value: str) -> None:
    text = f'[[providers]]\nid = "lab"\npreset = "vllm"\nheaders = {{ authorization = "{value}" }}'
    with pytest.raises(ConfigError, match='api_key_env = "LAB_KEY"'):
        parse_settings(text)


def test_a_secret_in_a_header_is_answered_with_the_variable_to_use(tmp_path: Path) -> None:
    text = (
        '[[providers]]\nid = "lab"\npreset = "vllm"\nbase_url = "http://127.0.0.1:9/v1"\n'
        'headers = { Authorization = "Bearer sk-recognisable" }\n'
    )
    (tmp_path / "my.toml").write_text(text)
    ran = bardo("doctor", "--config", str(tmp_path / "my.toml"))
    assert "export LAB_API_KEY=" in ran.out
    assert "recognisable" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("[" + "a." * 5000 + "a]", "nests deeper than 50 levels"),
        ("a = " + "[" * 5000 + "]" * 5000, "nests deeper than 50 levels"),
        ("[telegram]\nallowed_users = [" + "7" * 5000 + "]", "a number of too many digits"),
        ('[inference.pipeline]\nembedding = "~nobody-of-that-name/model"', "no home folder for '~nobody-of-that-name'"),
    ],
    ids=["tables", "lists", "digits", "home"],
)
def test_a_file_that_no_reader_can_take_is_a_mistake_like_others(text: str, mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        parse_settings(text)


def mistakes_of(text: str) -> list[str]:
    """Return the mistakes of a file, each with its line."""
    with pytest.raises(ConfigError) as caught:
        parse_settings(text, "my.toml")
    return [str(problem) for problem in caught.value.problems] or [str(caught.value)]


def test_all_mistakes_of_one_provider_are_answered_together() -> None:
    text = (
        '[[providers]]\nid = "openai"\npreset = "opnai"\napi_key = "sk-1"\ncolour = 3\n'
        '[[providers]]\npreset = "vllm"\nbase_url = "nonsense"\nscope = { x = "1" }\n'
        'headers = { Authorization = "Bearer $LAB" }\n'
    )
    found = mistakes_of(text)
    assert [re.search(r"line (\d+)", one)[1] for one in found] == ["3", "4", "5", "6", "8", "9", "10"]  # type: ignore[index]
    assert "did you mean openai" in found[0]
    assert "'id' is missing" in found[3]


def test_a_key_that_was_left_out_as_wrong_causes_no_second_mistake() -> None:
    assert len(mistakes_of('[[providers]]\nid = "lab"\npreset = 3\n')) == 1
    assert len(mistakes_of('[[providers]]\nid = "lab"\npreset = "openai-compatible"\nbase_url = 3\n')) == 1


@pytest.mark.parametrize(
    ("table", "variable"),
    [
        ('id = "groq"', "GROQ_API_KEY"),
        ('id = "fast"\npreset = "groq"', "GROQ_API_KEY"),
        ('id = "my-lab"\ndialect = "openai_chat"\nbase_url = "http://x/v1"', "MY_LAB_API_KEY"),
        ('id = "lab"\npreset = "grok-typo"', "LAB_API_KEY"),
    ],
)
def test_a_key_in_the_file_is_answered_with_a_variable_named_after_its_provider(table: str, variable: str) -> None:
    assert f'api_key_env = "{variable}"' in mistakes_of(f'[[providers]]\n{table}\napi_key = "sk-1"\n')[-1]


GLOBS = [
    ('[golem.tools]\nrisk_check = ["a", "x[z-a]*"]', 1),
    ('[inference.pipeline.cache]\nttl_seconds_at = { "x[z-a]*" = 5 }', 2),
    ('[[inference.pipeline.prefilter.caps]]\nmodels = ["x[z-a]*"]\nmost_prompt_tokens = 5', 2),
    ('[[inference.pipeline.prefilter.caps]]\nmost_prompt_tokens = 5\nworkloads = ["x[z-a]*"]', 3),
    ('[inference.pipeline.prefilter.tokenizers]\n"x[z-a]*" = "x.json"', 1),
    ('[inference.pipeline.privacy]\nallowed = ["x[z-a]*"]', 2),
    ('[[keys]]\nid = "a"\nkey_env = "A"\nmodels = ["a*", "x[z-a]*"]', 4),
    ('[[models]]\nprovider = "p"\nmatch = ["a*"]\n[[models]]\nprovider = "p"\nmatch = ["x[z-a]*"]', 6),
    ('[[prices]]\nmatch = "x[z-a]*"\nfrom = 2026-11-23\ninput = 3.0', 2),
    ('[[prices]]\nmatch = "a"\nprovider = "x[z-a]*"\nfrom = 2026-11-23\ninput = 3.0', 3),
    ('[provider_ids]\nshared = ["x[z-a]*"]', 2),
    ('[[providers]]\nid = "openai"\nmodel_extra_body = { "x[z-a]*" = { a = 1 } }', 3),
    ('[[reasoning_formats]]\nname = "lab"\nstart = "<a>"\nend = "</a>"\npatterns = ["x[z-a]*"]', 5),
]


@pytest.mark.parametrize(("text", "line"), GLOBS)
def test_a_glob_that_no_text_can_be_matched_with_is_refused_where_it_stands(text: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text, "my.toml")
    problems = caught.value.problems or (caught.value,)
    assert any(f"line {line}: the glob 'x[z-a]*' fits nothing" in one.message for one in problems), problems
    parse_settings(text.replace("z-a", "a-z"), "my.toml")


def test_each_setting_that_is_said_to_hold_globs_is_looked_at() -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/configure-providers.md").read_text(encoding="utf-8")
    said = re.findall(r"^\| `\[+([\w.]+)\]+` `(\w+)` \|[^\n]*\bglobs?\b", page, re.MULTILINE)
    named = {f"{table}.{key}" for table, key in said} - {"aliases.model", "models.goes_first", "keys.models"}
    assert len(named) > 8
    looked_at = {name.removesuffix(".models").removesuffix(".workloads") for name in mistakes.GLOBS} | {*mistakes.GLOBS}
    assert named <= looked_at


def test_a_key_is_made_with_no_glob_that_fits_nothing() -> None:
    assert checked_globs(["gpt-5*", " x[a-z] "]) == ("gpt-5*", "x[a-z]")
    with pytest.raises(InvalidRequest, match=r"the glob 'x\[z-a\]' fits nothing"):
        checked_globs(["gpt-5*", "x[z-a]"])
