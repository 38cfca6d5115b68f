"""What routing knows of a target: its features, price and rating, from the catalog and from what the server says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from bardo.accounting.price_table import Price
from bardo.catalog.features import Fact, features
from bardo.catalog.matching import plain_id
from bardo.catalog.models import model_qualities
from bardo.catalog.profile_fields import profile_fields
from bardo.catalog.routing_rows import routing_rows
from bardo.planning.knowledge import TargetFacts, control_target
from bardo.planning.profile_fields import form_at
from bardo.planning.route import Provider, Target, endpoints_of
from bardo.planning.workload_requests import PRIVACY
from bardo.reasoning.control import ResolvedFacts, know
from bardo.routing.candidates import Candidate, Prices, spelled
from bardo.structured.modes import SchemaTarget, rungs_of
from bardo.tools import tool_call_format_for_model
from bardo.values.usage import usd

_FREE = Prices(input=0.0, output=0.0)
_LITTLE = ("minimal", "low")


def candidate_of(
    target: Target, facts: TargetFacts | None = None, *, private: bool = False, price: Price | None = None
) -> Candidate:
    """Return a target as routing compares it, at a price, None where that is not known.

    `facts` None: nothing is known beside the catalog. `private`: the operator lists the provider among those that keep nothing of a call.
    What the operator says goes before what the server says, and that before the rows and what the provider's address suggests.
    """
    provider, row = target.provider, target.provider.row
    known = know(control_target(target)) if facts is None else facts.known
    name, names = spelled(target.model), _names(target.model)
    said = {} if facts is None else dict(facts.features)
    if private or provider.private is False:
        said[PRIVACY] = private
    quality = model_qualities().find(name)
    has = features().of(row.id, names, set(_facts(target, known)), said)
    return Candidate(
        provider=provider.id,
        model=target.model,
        features=has,
        prices=_prices(price, runs_here=PRIVACY in has and bool(row.base_url) and on_own_machine(provider)),
        rating=None if quality is None else routing_rows().quality[quality],
        payments=row.payment,
    )


def chat_models(provider: Provider) -> list[str]:
    """Return the models of a provider's list that answer conversations, as far as is known."""
    return [model for model in provider.models if features().answers_chats(_names(model))]


def _names(model: str) -> set[str]:
    """Return the plain ids that a model goes by."""
    return {spelled(model), plain_id(model.rpartition("/")[2])}


def _prices(price: Price | None, *, runs_here: bool) -> Prices | None:
    """Return what a model costs; of one without a price nothing is known, unless a server of this machine runs it."""
    rates = None if price is None else price.schedule.rates
    if rates is None or rates.input is None or rates.output is None:
        return _FREE if runs_here else None
    return Prices(input=usd(rates.input), output=usd(rates.output))


def on_own_machine(provider: Provider) -> bool:
    """Whether all addresses of the provider are on this machine, and its preset is a server that people run there.

    A hosted provider that is reached by an address of this machine stands behind a relay or a tunnel.
    """
    row = provider.row
    return row.at_users_address and not row.hands_on and all(map(_is_loopback, provider.base_urls))


@lru_cache(maxsize=1024)
def _is_loopback(base_url: str) -> bool:
    host = (urlsplit(base_url).hostname or "").rstrip(".")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _facts(target: Target, known: ResolvedFacts) -> Iterator[Fact]:
    """Yield what holds of a target by what other rows and its server say; a mere assumption by its provider's kind says nothing."""
    if known.row is not None or known.classified:
        if set(known.control) - {"none"} or known.facts.omit == "on":
            yield "thinks"
        if "adaptive" in known.control:
            yield "adaptive"
        if known.takes_budget or (known.takes_level and known.levels[0] in _LITTLE):
            yield "low_effort"
    if any(_holds_to_schemas(at) for at in endpoints_of(target)):
        yield "schema"
    if tool_call_format_for_model(target.model) is not None:
        yield "tool_format"
    if _takes("web_search", target):
        yield "field:web_search"
    if _takes("predicted_output", target):
        yield "field:predicted_output"
    if target.provider.row.private or on_own_machine(target.provider):
        yield "private"


def _holds_to_schemas(at: Target) -> bool:
    row = at.provider.row
    rungs = rungs_of(SchemaTarget(provider=row.id, model=at.model.lower(), dialect=row.dialect, id=at.provider.id))
    return rungs[0].form == "json_schema" and not rungs[0].advertised


def _takes(field: str, target: Target) -> bool:
    """Whether a field of a profile can be sent at one of the target's endpoints."""
    return any(form_at(row, at) for row in profile_fields() if row.name == field for at in endpoints_of(target))
