"""What becomes of the events of one reply: they pass its stages, secrets are taken out of them, and they are folded into one Response."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bardo.catalog.features import shows_summaries
from bardo.replies.reply_stages import (
    CallIds,
    FillMissingFields,
    FoldStage,
    pass_through,
    pass_whole,
    passed_to_the_end,
)
from bardo.replies.sound_frames import without_secrets
from bardo.replies.written_tokens import WrittenTokens
from bardo.streams.stage import Stage
from bardo.values.errors import BardoError
from bardo.values.events import Event, Failed, ReplyStart
from bardo.values.fold import ResponseFold
from bardo.values.runs import MANY, runs_of
from bardo.values.secrets import Secrets, SecretWatch


class ReplyPipeline:
    """The stages of one reply, and what has come out of them.

    `of_text` are the stages that read the model's text. `budget` ends its thinking, `thinking` leaves it out for the client, `stamp` is
    what a provider may leave out, and `last` stand behind all these. Calls without an id get one of `make_id`. `clean` takes all `secrets`
    that the provider may quote out of an error. `most_text` is how many characters are held.

    `fold` is the reply as its client gets it, `unfiltered` as the model gave it where something may be left out, `failure` what broke it,
    and `written` counts what the model wrote, whoever gets it.
    """

    __slots__ = ("_clean", "_secrets", "failure", "fold", "ids", "stages", "unfiltered", "watch", "written")

    def __init__(
        self,
        of_text: Sequence[Stage[Event, Event]],
        *,
        provider: str,
        model: str,
        billed_as_output: bool,
        most_text: int | None,
        make_id: Callable[[], str],
        answer_tool: str,
        budget: Stage[Event, Event] | None,
        thinking: Stage[Event, Event] | None,
        stamp: ReplyStart | None,
        last: Sequence[Stage[Event, Event]],
        secrets: Secrets,
        clean: Callable[[BardoError], object],
    ) -> None:
        self.ids = CallIds(make_id, answer_tool)
        self.fold = ResponseFold(
            provider=provider,
            model=model,
            billed_as_output=billed_as_output,
            most_text=most_text,
            summarizes=shows_summaries,
        )
        self.unfiltered: ResponseFold | None = None
        stages = [*of_text] if budget is None else [*of_text, budget]
        if thinking is not None:
            self.unfiltered = ResponseFold(
                provider=provider, model=model, most_text=most_text, summarizes=shows_summaries
            )
            stages += (FoldStage(self.unfiltered), thinking)
        if stamp is not None:
            stages.append(FillMissingFields(stamp))
        self.stages = [*stages, *last] if last else stages
        self.written = WrittenTokens()
        self.failure: BardoError | None = None
        self.watch = SecretWatch(secrets)
        self._secrets = secrets
        self._clean = clean

    def feed(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return what comes of decoded events for the client."""
        if not events:
            return events
        self.written.feed(events)
        return self.take(pass_through(self.ids.filled(events), self.stages))

    def feed_whole(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return what comes of all the events of a reply without calls."""
        self.written.feed(events)
        passed = pass_whole(events, self.stages)
        if self.unfiltered is not None and not self.unfiltered.begun:
            # Nobody thought, so that nothing is left out for the client.
            self.unfiltered = None
        return self.take(passed)

    def passed_to_the_end(self, last: Sequence[Event]) -> list[Event]:
        """Return what comes of the last events, and of what each stage held. They are not taken yet."""
        return passed_to_the_end(last, self.stages)

    def take(self, events: Sequence[Event]) -> Sequence[Event]:
        """Fold events that have passed the stages, and return them without secrets."""
        if self.watch.seen:
            events = [without_secrets(event, self._secrets) for event in events]
        if Failed in map(type, events):
            for event in events:
                if type(event) is Failed and self.failure is None:
                    self._clean(event.error)
                    self.failure = event.error
        elif len(events) >= MANY:
            for run in runs_of(events):
                self.fold.feed_run(run)
            return events
        self.fold.feed_all(events)
        return events
