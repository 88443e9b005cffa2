"""GET /api/health of a delegated consumer: its name, how long it runs, and the keys that it holds."""

from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.ordered.json_text import encode_json


def health_app(facts: Callable[[], dict[str, Any]]) -> Starlette:
    async def health(_request: Request) -> Response:
        return Response(encode_json(facts()), media_type="application/json", headers={"Cache-Control": "no-store"})

    return Starlette(routes=[Route("/api/health", health, methods=["GET"])])
