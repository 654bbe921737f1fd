"""This server's own OpenAPI document, made from its table of routes. Pure."""

from typing import Any

from ddx_local import __version__
from ddx_local.server import schemas
from ddx_local.server.routes import Route, Table

Json = dict[str, Any]

_PATH = {
    "run_id": {"type": "string", "pattern": "^[0-9]{8}-[0-9]{6}-[0-9a-f]{8}$"},
    "id": {"type": "string", "minLength": 1},
}


def document(table: Table) -> Json:
    """The document (OpenAPI 3.1)."""
    paths: dict[str, Json] = {}
    for route in table.routes:
        paths.setdefault(route.path.replace(":path}", "}"), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ddx-local",
            "version": __version__,
            "description": "Differential diagnosis by several agents of a small local model. Decision support, not a medical device.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas.SCHEMAS,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def _operation(route: Route) -> Json:
    known = schemas.OPERATIONS.get((route.method, route.path), schemas.Operation("A file of the panel.", content="*/*"))
    answer: Json = {"description": known.summary}
    if known.status != "204":
        answer["content"] = {known.content: {"schema": known.reply or {}}}
    responses = {known.status: answer, **{status: _error(text) for status, text in _ERRORS.items()}}
    if route.path == "/ddx/v1/session" and route.method == "POST":
        responses["401"] = {"description": "No key of this server's."}
    if route.path.startswith("/panel/") or route.path == "/":
        responses["304"] = {"description": "Not changed."}
    found: Json = {
        "operationId": f"{route.method.lower()} {route.path}",
        "summary": known.summary,
        "responses": responses,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": schema}
            for name, schema in _PATH.items()
            if f"{{{name}" in route.path
        ]
        + [{"name": name, "in": "query", "schema": schema} for name, schema in known.query.items()],
    }
    if route.scope == "none":
        found["security"] = []
    if route.body:
        kind = "application/json" if route.body == "json" else "application/x-www-form-urlencoded"
        found["requestBody"] = {"required": True, "content": {kind: {"schema": known.body or {"type": "object"}}}}
    return found


_ERRORS = {
    "400": "The request is wrong.",
    "401": "No key, or none of this server's.",
    "403": "The key does not open this.",
    "404": "There is no such thing.",
    "405": "The route takes another method.",
    "408": "The body took too long.",
    "409": "The run is in another state.",
    "413": "The body is too large.",
    "415": "The body has another type.",
    "422": "The case failed.",
    "429": "Too many requests.",
    "431": "Too many headers.",
    "503": "The engine is not there.",
}


def _error(text: str) -> Json:
    return {"description": text, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
