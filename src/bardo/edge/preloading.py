"""Load before serving what requests would otherwise load: modules and files of the catalog.

A process whose file descriptors are used up cannot open them any more, and the requests that need them first would fail.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from bardo.accounting.price_table import price_table
from bardo.catalog.dialect_models import builtin_dialect_models
from bardo.catalog.endpoint_choice import choice_rows
from bardo.catalog.features import features
from bardo.catalog.field_refusals import builtin_field_refusals
from bardo.catalog.forms import builtin_forms
from bardo.catalog.hosted_tools import hosted_tools
from bardo.catalog.kept_ids import kept_ids
from bardo.catalog.load import builtin
from bardo.catalog.meaningful import builtin_meaningful
from bardo.catalog.models import builtin_models
from bardo.catalog.parameters import builtin_parameters
from bardo.catalog.prices import price_rows
from bardo.catalog.replay import builtin_replay
from bardo.catalog.request_shapes import builtin_shape_rules
from bardo.catalog.shared_fields import shared_rows
from bardo.dialects import CLIENT_FORMS, DIALECTS, dialect
from bardo.edge.http import Client, aiohttp_session
from bardo.edge.introspect.adapters import builtin_adapters
from bardo.reasoning.registry import builtin_formats
from bardo.structured.modes import ladders
from bardo.structured.subsets import subsets
from bardo.tools.formats import tool_call_formats

# The HTTP client, JSON Schema, JSON repair, and names of hosts that are not ASCII.
_MODULES = (
    "bardo.edge.direct_transport",
    "aiohappyeyeballs",
    "jsonschema_rs",
    "json_repair",
    "encodings.idna",
    "unicodedata",
)
_TABLES: tuple[Callable[[], object], ...] = (
    builtin,
    builtin_adapters,
    builtin_dialect_models,
    builtin_field_refusals,
    builtin_formats,
    builtin_forms,
    builtin_meaningful,
    builtin_models,
    builtin_parameters,
    builtin_replay,
    builtin_shape_rules,
    choice_rows,
    features,
    ladders,
    price_rows,
    price_table,
    hosted_tools,
    kept_ids,
    shared_rows,
    subsets,
    tool_call_formats,
)


def preload(client: Client) -> None:
    """Import every dialect and library, and read every table of the catalog. It takes a few tenths of a second, once.

    aiohttp is loaded where `client` names it. Raises ConfigError where it is not installed.
    """
    if client == "aiohttp":
        aiohttp_session()
    for name in (*DIALECTS, *CLIENT_FORMS):
        dialect(name)
    for module in _MODULES:
        import_module(module)
    for read in _TABLES:
        read()
