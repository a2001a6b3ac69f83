"""The OpenAPI document of a service, made from its operations."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from tenure.services.limits import ID_BYTES
from tenure.services.operations import Operation
from tenure.services.problems import PROBLEM_TYPE, ServiceProblem

OF_ANY = (400, 401, 403, 408, 413, 415, 422, 429, 500, 503)
"""The statuses with which any operation may refuse."""
REASONS = {
    200: "done",
    201: "made",
    204: "done",
    304: "not changed",
    400: "not well-formed",
    401: "no valid token",
    403: "not allowed",
    404: "it does not exist",
    408: "too slow",
    409: "not now",
    410: "it went",
    412: "it has another version",
    413: "too large",
    415: "compressed",
    422: "not what the operation takes",
    429: "too many",
    500: "it failed",
    503: "not now: try again",
}
ANY_TEXT = "^[!-~]+$"
REF = "#/components/schemas/{name}"


def document(title: str, version: str, operations: Iterable[Operation]) -> dict[str, Any]:
    """The document, in OpenAPI 3.1."""
    listed = list(operations)
    types = _types(listed)
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    schema_of = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for each in listed:
        paths.setdefault(each.path, {})[each.method.lower()] = _described(each, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": components},
    }


def _types(operations: Iterable[Operation]) -> list[Any]:
    found: dict[str, Any] = {repr(ServiceProblem): ServiceProblem}
    for each in operations:
        for kind in (each.body, *each.answers.values()):
            if kind is not None:
                found[repr(kind)] = kind
    return list(found.values())


def _described(of: Operation, schema_of: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": of.summary,
        "operationId": f"{of.method.lower()}{re.sub(r'[^a-z]+', '_', of.path)}".rstrip("_"),
        "parameters": _parameters(of),
        "responses": {
            **{
                str(status): _response(status, kind, schema_of, of.media)
                for status, kind in of.answers.items()
            },
            **{
                str(status): _response(status, ServiceProblem, schema_of, PROBLEM_TYPE)
                for status in sorted({*OF_ANY, *of.refusals})
            },
        },
    }
    if of.body is not None:
        described["requestBody"] = {
            "required": not of.is_optional,
            "content": {"application/json": {"schema": schema_of[repr(of.body)]}},
        }
    if of.document:
        text = {"schema": {"type": "string"}}
        described["requestBody"] = {"required": True, "content": {of.document: text}}
    return described


def _response(
    status: int,
    kind: Any,  # noqa: ANN401  # a type
    schema_of: dict[str, Any],
    media: str = "application/json",
) -> dict[str, Any]:
    found: dict[str, Any] = {"description": REASONS.get(status, "see the page of the service")}
    if kind is not None:
        found["content"] = {media: {"schema": schema_of[repr(kind)]}}
    return found


def _parameters(of: Operation) -> list[dict[str, Any]]:
    text = {"type": "string", "minLength": 1}
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in re.findall(r"{(\w+)}", of.path)
    ]
    for name, said in of.headers.items():
        about, pattern = (said, ANY_TEXT) if isinstance(said, str) else said
        described = {"type": "string", "maxLength": ID_BYTES.most, "pattern": pattern}
        found.append({"name": name, "in": "header", "description": about, "schema": described})
    (schema,), components = msgspec.json.schema_components([of.query], ref_template=REF)
    properties = components[schema["$ref"].rpartition("/")[2]]["properties"]
    found += [
        {"name": name, "in": "query", "schema": {k: v for k, v in it.items() if k != "default"}}
        for name, it in properties.items()
    ]
    return found
