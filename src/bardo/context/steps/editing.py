"""The common part of the layers that shorten texts: one decision a text and session, and the ways in which a text becomes shorter.

A decision is kept as a short recipe, which gives the same text again in every later turn, so the prompt that a provider has in its cache
stays the same. A new change in that prompt is made only where it costs less than it saves, or where the prompt would not fit otherwise.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from bardo.context.effects import Embed, LoadForSession, StoreForSession, TextVectors
from bardo.context.layer import Effect, EffectFailed, LayerFacts, Passed, Pause, Receipt, changed
from bardo.context.steps.cache_cost import Edit, FirstChange, behind, first_worth_making, warm_prefix
from bardo.context.steps.prompt_parts import (
    TEXTS,
    Part,
    PartKind,
    is_bound,
    kept_from,
    last_prompt,
    message_tokens,
    parts_of,
    turns_so_far,
    with_texts,
)
from bardo.context.steps.settings import EditingSettings
from bardo.values.degradation import Degradation
from bardo.values.request import Request
from bardo.values.usage import estimate_tokens

_MOST_RECIPES = 4_000


class Session(msgspec.Struct, frozen=True, array_like=True):
    """A layer's stored state of a session: a recipe for each text that it changed, and how many tokens were sent when, in Unix time."""

    recipes: dict[str, str] = {}
    sent_tokens: int = 0
    sent_at: float = 0.0


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one part that a layer could make, with the tokens that it saves."""

    part: Part
    recipe: str
    saved: int


EditingSteps = Generator[Effect, Any, Passed]
Vectors = Sequence[Sequence[float]] | None


class Editor(Protocol):
    """The differing part of a layer that shortens texts. `least_characters`: shorter texts are left alone."""

    name: str
    settings: EditingSettings
    least_characters: int
    kinds: frozenset[PartKind] = TEXTS

    def texts_to_embed(self, parts: Sequence[Part], request: Request) -> tuple[str, ...]:
        """Return the texts of which vectors are needed; most layers need none."""
        return ()

    def proposals(self, parts: Sequence[Part], request: Request, vectors: Vectors) -> list[Proposal]:
        """Return what could be changed, in the order of the parts. `vectors` are those that were asked for, or None if there are none."""
        ...

    def apply(self, part: Part, recipe: str) -> str:
        """Return the text that a recipe makes of a part. The same recipe always gives the same text."""
        ...

    def describe(self, parts: Sequence[Part]) -> str:
        """Return a clause for a person: what was done with these parts."""
        ...


class Editing:
    """A layer that shortens texts, by an editor."""

    def __init__(self, editor: Editor) -> None:
        self.name = editor.name
        self._editor = editor

    def steps(self, request: Request, facts: LayerFacts) -> EditingSteps:
        """Shorten what was shortened before, and more where that pays. The last turns stay as they are."""
        settings, editor = self._editor.settings, self._editor
        until = kept_from(request.messages, settings.keep_turns)
        session = yield from recall_session(self.name, facts)
        if not until:
            # The text sent now may be in the provider's cache when it is old enough to be shortened.
            yield from keep_session(self.name, facts, Session(session.recipes, _tokens(request), facts.now))
            return self._unchanged(request, {"turns": "fewer than are kept"})
        texts, changed_from = _Texts(editor), None
        parts = _editable(request, editor, until)
        recipes = {part.key: session.recipes[part.key] for part in parts if part.key in session.recipes}
        target = facts.targets[0] if facts.targets else None
        before = facts.count_tokens(request, target)
        saw: dict[str, Any] = {"texts": len(parts), "kept_edits": len(recipes)}
        if before <= trigger(settings, facts):
            saw["below"] = trigger(settings, facts)
        elif any(is_bound(target.model) for target in facts.targets):
            saw["bound"] = "the model's thinking is valid only behind the same prompt"
        else:
            fresh = [part for part in parts if part.key not in recipes]
            yield Pause()
            vectors = yield from _vectors(editor.texts_to_embed(fresh, request))
            proposed = editor.proposals(fresh, request, vectors)
            chosen, changed_from = self._choose(proposed, texts.saved(parts, recipes), session, request, facts, before)
            saw |= {"could": len(proposed), "new_edits": len(chosen)}
            recipes |= {proposal.part.key: proposal.recipe for proposal in chosen}
            yield Pause()
        edited = [(part, texts.of(part, recipes[part.key])) for part in parts if part.key in recipes]
        passed = self._apply(request, edited, facts, before, saw)
        # What another conversation with the same beginning has decided is kept too.
        recipes = dict(list((session.recipes | recipes).items())[-_MOST_RECIPES:])
        yield from keep_session(self.name, facts, Session(recipes, _tokens(passed.request), facts.now))
        return msgspec.structs.replace(passed, found=changed_from)

    def _choose(
        self,
        proposed: Sequence[Proposal],
        made: Sequence[Edit],
        session: Session,
        request: Request,
        facts: LayerFacts,
        tokens: int,
    ) -> tuple[Sequence[Proposal], FirstChange | None]:
        """Return the proposals that are worth what they cost, and from where on they change the prompt.

        Where a prompt of so many `tokens` does not fit, all of them are worth it.
        """
        settings = self._editor.settings
        warm = warm_prefix(facts, session.sent_tokens, session.sent_at, settings.cache_seconds)
        edits = behind([Edit(before=proposal.part.before, saved=proposal.saved) for proposal in proposed], made)
        turns = settings.remaining_turns or turns_so_far(request.messages)
        first = 0 if exceeds(tokens, request, facts) else first_worth_making(edits, warm, turns)
        return proposed[first : first + _MOST_RECIPES], FirstChange(edits[first].before) if edits[first:] else None

    def _apply(
        self, request: Request, edited: Sequence[tuple[Part, str]], facts: LayerFacts, before: int, saw: dict[str, Any]
    ) -> Passed:
        if not edited:
            return self._unchanged(request, saw, before)
        texts = {(part.message, part.block, part.piece): text for part, text in edited}
        shorter = changed(request, messages=with_texts(request.messages, texts))
        after = facts.count_tokens(shorter, facts.targets[0] if facts.targets else None)
        did = self._editor.describe([part for part, _ in edited])
        return Passed(
            request=shorter,
            receipt=Receipt(layer=self.name, did=did, saw=saw, tokens_before=before, tokens_after=after),
            degraded=(Degradation("messages", asked=f"{before} tokens", sent=f"{after} tokens", why=did),),
        )

    def _unchanged(self, request: Request, saw: dict[str, Any], tokens: int | None = None) -> Passed:
        receipt = Receipt(layer=self.name, saw=saw, tokens_before=tokens, tokens_after=tokens)
        return Passed(request=request, receipt=receipt)


class _Texts:
    """The texts that recipes make of parts, each made once in a call."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._made: dict[str, str] = {}

    def of(self, part: Part, recipe: str) -> str:
        """Return the text that a recipe makes of a part."""
        made = self._made.get(part.key)
        if made is None:
            made = self._made[part.key] = self._editor.apply(part, recipe)
        return made

    def saved(self, parts: Sequence[Part], recipes: Mapping[str, str]) -> list[Edit]:
        """Return what the changes of earlier turns save."""
        return [
            Edit(before=part.before, saved=part.tokens - estimate_tokens(self.of(part, recipes[part.key])))
            for part in parts
            if part.key in recipes
        ]


def recall_session(layer: str, facts: LayerFacts) -> Generator[Effect, Any, Session]:
    """Return a layer's stored state of the session, or an empty one if there is none or it cannot be read."""
    raw = (yield LoadForSession(layer, facts.session)) if facts.session else None
    if not raw:
        return Session()
    try:
        return msgspec.msgpack.decode(raw, type=Session)
    except msgspec.DecodeError:
        return Session()


def keep_session(layer: str, facts: LayerFacts, session: Session) -> Generator[Effect, Any, None]:
    """Keep what a layer needs in the later turns of the session, unless nothing is sent."""
    if facts.session and not facts.dry:
        yield StoreForSession(layer, facts.session, msgspec.msgpack.encode(session))


def trigger(settings: EditingSettings, facts: LayerFacts) -> int:
    """Return above how many tokens a prompt is shortened: the setting's number, or less where the window is small."""
    windows = [target.window for target in facts.targets if target.window]
    if not windows:
        return settings.above_tokens
    return min(settings.above_tokens, int(min(windows) * settings.above_share))


def exceeds(tokens: int, request: Request, facts: LayerFacts) -> bool:
    """Whether a prompt and the answer that is asked for have no room at a target."""
    windows = [target.window for target in facts.targets if target.window]
    return bool(windows) and tokens + (request.max_output_tokens or 0) >= min(windows)


def _vectors(texts: tuple[str, ...]) -> Generator[Effect, Any, Vectors]:
    """Return the vectors of texts, or None if nothing makes any."""
    if not texts:
        return None
    try:
        embedded: TextVectors = yield Embed(texts)
    except EffectFailed:
        return None
    return embedded.vectors


def _editable(request: Request, editor: Editor, until: int) -> list[Part]:
    """Return the parts that may be changed: those before the last turns, and none of the last thing that the user said."""
    newest = last_prompt(request.messages)
    parts = parts_of(request.messages, least_characters=editor.least_characters, until=until, kinds=editor.kinds)
    return [part for part in parts if part.message != newest]


def _tokens(request: Request) -> int:
    return sum(map(message_tokens, request.messages))


# JSON has no text without an end; for one the expression takes the rest, so that its time grows with the text whatever it is given.
_JSON_PIECE = re.compile(r'"(?:[^"\\]|\\.)*+"?|\s++', re.DOTALL)
_BLANK_LINES = re.compile(r"\n{3,}+")
_CELL_SPACE = re.compile(r" {2,}+")
_RULE_CELL = re.compile(r"-{4,}+")
_LEAST_BLOB = 400
_BLOB = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{_LEAST_BLOB},}}+={{0,2}}")
_HEAD_SHARE = 0.6
_MOST_JSON = 8_000_000


def without_padding(text: str) -> str:
    """Return a text that says the same in fewer characters: JSON without space between its tokens, lines and tables without padding."""
    return compact_json(text) or _trimmed(text)


def compact_json(text: str) -> str:
    """Return JSON text without space between its tokens, each token as it was written; empty for text that is no JSON object or list."""
    bare = text.strip()
    if not bare or bare[0] not in "{[" or len(bare) > _MOST_JSON or _decoded(bare) is None:
        return ""
    return _JSON_PIECE.sub(lambda piece: piece.group() if piece.group()[0] == '"' else "", bare)


def comma_separated(text: str) -> str:
    """Return a JSON list of objects with the same plain fields as comma-separated values with a header; empty for any other text.

    The values are kept, their types are not: `"1"` and `1` are the same cell.
    """
    bare = text.strip()
    rows = _decoded(bare) if bare.startswith("[") and len(bare) <= _MOST_JSON else None
    if not isinstance(rows, list) or len(rows) < 2 or not all(isinstance(row, dict) and row for row in rows):
        return ""
    columns = list(rows[0])
    if any(list(row) != columns or not all(map(_is_plain, row.values())) for row in rows):
        return ""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(columns)
    cells = [[str(value).lower() if isinstance(value, bool) else value for value in row.values()] for row in rows]
    table.writerows(cells)
    return written.getvalue().rstrip("\n")


def without_blobs(text: str) -> str:
    """Return a text with each long run of base64 replaced by a mark that says how long it was."""
    if max(map(len, text.split()), default=0) < _LEAST_BLOB:
        return text
    return _BLOB.sub(lambda blob: f"[{len(blob.group())} characters of encoded data left out]", text)


def cut_middle(text: str, longest: int, *, gone: int = 0) -> str:
    """Return a text of about `longest` characters: its beginning and its end, cut between lines where that is near, and a mark between.

    The mark says how many characters are left out, with those that were `gone` before.
    """
    if len(text) <= longest:
        return text
    head, tail = int(longest * _HEAD_SHARE), longest - int(longest * _HEAD_SHARE)
    line_end = text.rfind("\n", head - head // 4, head)
    end = head if line_end < 0 else line_end
    begin = _line_begin(text, len(text) - tail)
    return f"{text[:end]}\n[... {begin - end + gone} characters left out ...]\n{text[begin:]}"


def _line_begin(text: str, place: int) -> int:
    line_end = text.find("\n", place, place + (len(text) - place) // 4)
    return place if line_end < 0 else line_end + 1


def _trimmed(text: str) -> str:
    if " \n" in text or "\t\n" in text or text[-1:] in " \t":
        text = "\n".join([line.rstrip(" \t") for line in text.split("\n")])
    if "\n\n\n" in text:
        text = _BLANK_LINES.sub("\n\n", text)
    if "|\n" not in text:
        return text
    lines = text.split("\n")
    return "\n".join([_table_row(line) if line.startswith("|") and line.endswith("|") else line for line in lines])


def _table_row(line: str) -> str:
    if not line.strip("|-: "):
        return _RULE_CELL.sub("---", _CELL_SPACE.sub(" ", line))
    return _CELL_SPACE.sub(" ", line)


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)
