"""The OpenAPI document, made from the endpoints and the structures of their bodies."""

import re
from http import HTTPStatus
from typing import Any, Final

import msgspec

from headrace import __version__
from headrace.ordered.bodies import MOST_TOGETHER
from headrace.ordered.endpoints import ENDPOINTS, Endpoint

ERROR: Final = {
    "type": "object",
    "required": ["error", "what_to_do"],
    "properties": {"error": {"type": "string"}, "what_to_do": {"type": "string"}},
}
ALWAYS: Final = (400, 401, 403, 413, 503)  # Whatever is asked for.


def openapi_document() -> dict[str, Any]:
    bodies = [endpoint.body for endpoint in ENDPOINTS if endpoint.body is not None]
    _, schemas = msgspec.json.schema_components(bodies, ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "headrace ordered master", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Error": ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def operation(endpoint: Endpoint) -> dict[str, Any]:
    path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]
    query = [{"name": name, "in": "query", "schema": schema} for name, schema in endpoint.query.items()]
    statuses = () if endpoint.is_open and endpoint.name == "openapi" else (*ALWAYS, *endpoint.refusals)
    answers = {str(status): refusal(status) for status in sorted(statuses)}
    found: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": path + query,
        "responses": {"200": {"description": "OK", "content": {"application/json": {}}}, **answers},
    }
    if endpoint.body is not None:
        schema: dict[str, Any] = {"$ref": f"#/components/schemas/{endpoint.body.__name__}"}
        if endpoint.takes_lists:
            schema = {"oneOf": [schema, {"type": "array", "items": schema, "maxItems": MOST_TOGETHER}]}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return found


def refusal(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": HTTPStatus(status).phrase, "content": {"application/json": {"schema": schema}}}
