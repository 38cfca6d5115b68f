"""Which models there are, and one of them, in the shape that the client's library reads."""

from __future__ import annotations

from bardo.dialects import dialect
from bardo.dialects.operations import ModelsForm
from bardo.edge.model_list import find_model, listed_models
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.routes import Route


async def list_models(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with every model that can be asked for."""
    models = await listed_models(context.runner.directory)
    await answer.whole(200, _form(route).encode_list(models), ())


async def show_model(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer with the model that the path names. Raises UnknownModel."""
    model = await find_model(context.runner.directory, route.arrival.model)
    await answer.whole(200, _form(route).encode_model(model), ())


def _form(route: Route) -> ModelsForm:
    form = dialect(route.dialect).models
    assert form is not None, route.dialect
    return form
