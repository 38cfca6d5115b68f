"""A gateway with a filled log, whose panel the tests of this folder open."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from bardo.adapters.stores.log import LogRow, LogWriter
from bardo.values.blocks import Opaque, ReasoningBlock, ReplyBlock, TextBlock, ToolCallBlock
from support.any_model import Simulator
from support.chromium import Chromium, Tab
from support.hostile_rows import hostile_row
from support.hostile_text import HOSTILE
from support.keyed_gateway import PRICE, KeyedGateway, keyed_gateway, make_key

TOML = f"""
[log]
content = true
[reasoning]
introspect = false
{PRICE}
"""
HOSTILE_CALL = "req_hostile"
"""A call with every hostile text in a turn, in an answer, in thinking and in a call of a tool."""
HOSTILE_NAMES = (
    *(
        "script-after-closers",
        "image-onerror",
        "attribute-double-quote",
        "link-javascript",
        "style-overlay",
        "meta-refresh",
    ),
    *(
        "very-long-word",
        "template-double-braces",
        "hyperlink",
        "null-bytes",
        "bidi-override",
        "label-quotes",
        "path-steps",
    ),
)
"""The texts that calls and keys of lists are named by; the rest stands in HOSTILE_CALL, and in what the page of live requests shows."""
PLAIN_CALL = "req_plain"
SEALED_CALL = "req_sealed"
"""A call whose thinking is unreadable, and was counted: 777 tokens."""
_MODELS = (("anthropic", "claude-sonnet-4-5"), ("openai_responses", "gpt-5"), ("deepseek", "deepseek-reasoner"))
_ANSWER = """# 27 · 43

It is **1161**:

| step | product |
|---|---:|
| 27 · 40 | 1080 |
| 27 · 3 | 81 |

```python
print(27 * 43)  # 1161
```

See [the rule](https://example.org/rule).
"""


@dataclass
class OpenPanel:
    """A panel, and who is signed in to it."""

    chromium: Chromium
    gateway: KeyedGateway
    key: str
    key_id: str
    cookies: list[dict[str, Any]]

    @property
    def address(self) -> str:
        """The address of its first page."""
        return f"{self.gateway.address}/panel"

    @contextmanager
    def tab(self, **options: Any) -> Iterator[Tab]:
        """Open a tab of the operator."""
        with self.chromium.tab(cookies=self.cookies, **options) as tab:
            yield tab


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    """Return a gateway with calls in its log and keys in its state."""
    simulators = [Simulator("anthropic"), Simulator("openai_responses"), Simulator("deepseek")]
    with keyed_gateway(tmp_path_factory.mktemp("panel"), simulators, toml=TOML) as gateway:
        for name in HOSTILE_NAMES:
            make_key(gateway.state, name=HOSTILE[name][:100], tags=(HOSTILE[name][:100],))
        with LogWriter(gateway.log, keep_content=True) as log:
            for row in sorted((*plain_rows(), *special_rows(), *hostile_rows()), key=lambda row: row.started_at):
                log.write(row)
        yield gateway


@pytest.fixture(scope="session")
def panel(chromium: Chromium, filled: KeyedGateway) -> OpenPanel:
    """Return the panel, with an operator who signed in by its form."""
    account, key = make_key(filled.state, name="Ada", operator=True)
    with chromium.tab() as tab:
        assert tab.open(f"{filled.address}/panel") == 200
        sign_in(tab, key)
        cookies = tab.wait_for(tab.page.context.cookies())
    return OpenPanel(chromium, filled, key, account.id, [dict(one) for one in cookies])


def sign_in(tab: Tab, key: str) -> None:
    """Sign in by the form that a tab shows, with the keyboard."""
    tab.wait_for(tab.page.get_by_label("Key").fill(key))
    tab.press("Enter")
    tab.wait_for(tab.page.get_by_role("button", name="Sign out").wait_for())


def plain_rows() -> Iterator[LogRow]:
    """Yield calls of the last days, as a gateway has them."""
    chance, now = random.Random(7), time.time()
    for number in range(300):
        provider, model = _MODELS[number % 3]
        failed = number % 17 == 0
        yield LogRow(
            request_id=f"req_{number:06d}",
            started_at=now - number * 1700,
            seconds=chance.uniform(0.3, 40),
            first_byte_seconds=chance.uniform(0.1, 2),
            client_dialect=("openai_chat", "anthropic_messages")[number % 2],
            provider=provider,
            provider_dialect="openai_chat",
            model_asked=model,
            model=model,
            streamed=number % 2 == 0,
            status=500 if failed else 200,
            outcome="error" if failed else "ok",
            error_class="UpstreamFailed" if failed else None,
            error_message="the provider failed" if failed else None,
            finish_reason=None if failed else "stop",
            visibility=("visible", "opaque", "none")[number % 3],
            input_tokens=chance.randrange(10, 9000),
            output_tokens=chance.randrange(10, 3000),
            reasoning_tokens=(None, 0, chance.randrange(2000))[number % 3],
            cost_usd=None if number % 11 == 0 else 0.0002 * number,
            cost_nanos=None if number % 11 == 0 else 200_000 * number,
            reasoning_intent="high",
            reasoning_emitted="medium",
            reasoning_layer="L2",
            reasoning_verdict=("honoured", "clamped", "void")[number % 3],
            subsystem=("review", "chat")[number % 2],
            tags=("team-a",),
        )


def special_rows() -> Iterator[LogRow]:
    """Yield the calls that tests open."""
    now = time.time()
    yield call(
        PLAIN_CALL, now - 3, ["What is 27 * 43?"], [ReasoningBlock(text="First **27 · 40**."), TextBlock(text=_ANSWER)]
    )
    sealed = ReasoningBlock(opaque=(Opaque(kind="encrypted", data="c2VhbGVk"),))
    yield call(
        SEALED_CALL, now - 2, ["Think."], [sealed, TextBlock(text="Done.")], visibility="opaque", reasoning_tokens=777
    )
    blocks: list[ReplyBlock] = []
    for name, text in HOSTILE.items():
        blocks += [
            ReasoningBlock(text=text),
            TextBlock(text=text),
            ToolCallBlock(id=name, name=text[:200], arguments=text),
        ]
    yield call(HOSTILE_CALL, now - 1, list(HOSTILE.values()), blocks)


def hostile_rows() -> Iterator[LogRow]:
    """Yield calls all of whose fields hold a hostile text: the newest, so that every list has them."""
    for number, name in enumerate(HOSTILE_NAMES):
        yield hostile_row(HOSTILE[name], number, started_at=time.time() - 10 - number)


def call(name: str, when: float, asked: list[str], blocks: list[ReplyBlock], **further: Any) -> LogRow:
    """Return a call with content."""
    body = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": text} for text in asked]}
    fields: dict[str, Any] = {"visibility": "visible", "reasoning_tokens": 40, **further}
    return LogRow(
        request_id=name,
        started_at=when,
        seconds=2.5,
        client_dialect="openai_chat",
        provider="anthropic",
        provider_dialect="anthropic_messages",
        model_asked="claude-sonnet-4-5",
        model="claude-sonnet-4-5",
        status=200,
        finish_reason="stop",
        finish_raw="end_turn",
        input_tokens=20,
        output_tokens=300,
        cost_usd=0.0042,
        cost_nanos=4_200_000,
        request_content=msgspec.json.encode(body).decode(),
        reply_content=msgspec.json.encode(blocks).decode(),
        **fields,
    )
