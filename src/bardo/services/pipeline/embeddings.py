"""Perform the effect `Embed` by a provider's model (`[inference.embeddings]`): calls of bardo's own, each in the log with its cost.

Texts whose vectors the provider did not give in time are embedded on this machine: their fingerprint tells the two apart.
"""

from __future__ import annotations

import asyncio
import logging
import math
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bardo.adapters.config.pipeline import OFF
from bardo.adapters.config.settings import may_mask, model_of_vectors
from bardo.adapters.embedding.embeddings import MOST_WAITING, Embeddings
from bardo.context.effects import Embed, TextVectors
from bardo.embedding.static_embedding import shortened
from bardo.values.errors import BardoError, CallerError
from bardo.values.operations import EmbedRequest, floats_of
from bardo.values.request import BardoOptions

if TYPE_CHECKING:
    from bardo.services.pipeline.effects import LayerHost
    from bardo.services.pipeline.parts import LayerParts

REST_SECONDS = 30.0
"""For how long a provider that failed is not asked: no call waits for it meanwhile."""
_AT_ONCE = 64
"""Texts of one request: more of them are several requests, so that reading a reply is short work."""
_NUMBERS_AT_ONCE = 20_000
"""Components that are brought to length 1 without leaving the event loop: about a millisecond."""
_MOST_KEPT = 2_048

_log = logging.getLogger("bardo.embeddings")


class ProviderEmbeddings:
    """Makes vectors with `model`, named with its provider, and where that fails with `local`. Times are those of the host's watch.

    `masked`: texts are masked by the layer `privacy` before they are sent.
    """

    def __init__(self, host: LayerHost, model: str, local: Embeddings, *, seconds: float, masked: bool) -> None:
        self._host = host
        self._model = model
        self._local = local
        self._seconds = seconds
        self._masked = masked
        self._kept: OrderedDict[str, array[float]] = OrderedDict()
        self._dimensions = 0
        self._rests_until = -math.inf
        self._waiting = 0

    async def perform(self, effect: Embed) -> TextVectors:
        """Return the vectors of an effect's texts. Raises EffectFailed where neither the provider nor this machine makes them."""
        if self._host.watch() < self._rests_until or self._waiting >= MOST_WAITING:
            return await self._local.perform(effect)
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                return await self._by_provider([shortened(text) for text in effect.texts])
        except (BardoError, TimeoutError, ValueError) as problem:
            if not isinstance(problem, CallerError):
                # A fault of these texts alone is no reason to spare the provider.
                self._rests_until = self._host.watch() + REST_SECONDS
            why = "it took too long" if isinstance(problem, TimeoutError) else type(problem).__name__
            _log.warning("%s makes no vectors (%s): they are made on this machine for a while", self._model, why)
            return await self._local.perform(effect)
        finally:
            self._waiting -= 1

    async def _by_provider(self, texts: Sequence[str]) -> TextVectors:
        # Texts of nothing are refused by providers.
        wanted = [text for text in dict.fromkeys(texts) if text.strip()]
        stored = {text: self._kept[text] for text in wanted if text in self._kept}
        # Where the model behind the name is another one now, what was kept is of no use.
        for vectors in (stored, {}) if stored else ({},):
            made: dict[str, array[float]] = {**vectors}
            missing = [text for text in wanted if text not in made]
            for begin in range(0, len(missing), _AT_ONCE):
                asked = missing[begin : begin + _AT_ONCE]
                made.update(zip(asked, await self._asked(asked), strict=True))
            sizes = {len(vector) for vector in made.values()}
            if len(sizes) < 2:
                break
        if len(sizes) > 1 or 0 in sizes:
            raise ValueError("vectors of different lengths")
        size = max(sizes, default=self._dimensions)
        if size != self._dimensions:
            self._kept.clear()
            self._dimensions = size
        for text, vector in made.items():
            self._kept[text] = vector
            self._kept.move_to_end(text)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        nothing = (0.0,) * (size or 1)
        return TextVectors(
            vectors=tuple([tuple(made[text]) if text in made else nothing for text in texts]),
            fingerprint=f"{self._model}-{size}",
            tier="provider",
        )

    async def _asked(self, texts: Sequence[str]) -> list[array[float]]:
        """Return what the provider makes of some texts. Raises BardoError, and ValueError for what are no numbers."""
        options = BardoOptions(
            pipeline=OFF, pipeline_by_operator=True, layers=(("privacy", True),) if self._masked else ()
        )
        request = EmbedRequest(model=self._model, inputs=tuple(texts), options=options)
        answer = await self._host.embed(request)
        vectors = [floats_of(vector) for vector in answer.vectors]
        if sum(map(len, vectors)) <= _NUMBERS_AT_ONCE:
            return [_of_length_one(vector) for vector in vectors]
        return await asyncio.to_thread(lambda: [_of_length_one(vector) for vector in vectors])


def _of_length_one(vector: Sequence[float]) -> array[float]:
    """Return a vector of length 1, or of zeros. Raises ValueError for numbers that are none."""
    length = math.hypot(*vector)
    if not math.isfinite(length):
        raise ValueError("a vector of what are no numbers")
    return array("f", [value / length for value in vector] if length else vector)


def perform_embed(parts: LayerParts) -> None:
    """Have `Embed` performed for the layers of one program, by a provider's model or on this machine. May be called again.

    Where nothing is sent, no provider is asked for vectors either.
    """
    if parts.effects.performs(Embed):
        return
    local = Embeddings(parts.pipeline.embedding)
    parts.closing.append(local.close)
    if local.tier == "static":
        local.embedded(("",))
    model = model_of_vectors(parts.settings)
    if model is None:
        parts.effects.register(Embed, local.perform)
        return
    seconds, masked = parts.settings.inference.embeddings.seconds, may_mask(parts.settings)
    made = ProviderEmbeddings(parts.host, model, local, seconds=seconds, masked=masked)
    parts.effects.register(Embed, made.perform, in_dry=local.perform)
