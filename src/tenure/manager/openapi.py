"""The OpenAPI document of the manager's JSON API, made from the types that its handlers use.

Handlers take and answer types already, so this is a table of them. Refusals that any request may
get are listed once. A test compares the table with the routes, and schemathesis compares a manager
with the document. WebSockets, the live feed and the pages are not in it: OpenAPI cannot describe
them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from aiohttp import web

from tenure.manager.answers import ManagersAnswer, Problem, StatusAnswer
from tenure.manager.api import OPENAPI_PATH, RESOLVE_PATH, Decision, NewPool
from tenure.manager.cluster_api import NewCluster
from tenure.manager.command_bodies import KEY_FORMS
from tenure.manager.entity_answers import KeysPage, ShownEntity
from tenure.manager.entity_files import (
    EXPORT_PATH,
    EXPORT_TYPE,
    IMPORT_PATH,
    ImportAnswer,
    ImportBody,
)
from tenure.manager.last_hour import PoolHour
from tenure.manager.operator_verbs import PATHS, Verb
from tenure.manager.sign_in_api import ShownToken, SignInAnswer
from tenure.manager.status import VERSION
from tenure.protocol.entity.inspection import PAGE_ITEMS, PAGE_KEYS
from tenure.protocol.lease import answers as of_pools
from tenure.protocol.topology import answers as of_clusters

JsonSchema: TypeAlias = dict[str, Any]
REF = "#/components/schemas/{name}"
REFUSALS = {
    400: "the request is malformed",
    401: "this asks for a token",
    403: "the token does not allow this, or another page asked",
    404: "there is no such thing",
    409: "not as things are",
    413: "the body is too large",
    415: "the body is not declared as JSON",
    421: "the manager is not known by this name",
    429: "too many requests on this connection",
    503: "this manager cannot answer: it may not lead",
}
TEXT: JsonSchema = {"type": "string"}
NUMBER: JsonSchema = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
HEX: JsonSchema = {"type": "string", "pattern": "^([0-9a-f]{2})+$"}
KEY: Mapping[str, JsonSchema] = dict(
    zip(KEY_FORMS, (TEXT, HEX, NUMBER | {"maximum": 2**64 - 1}), strict=True)
)
"""A key, in one of three ways."""


def _up_to(most: int) -> JsonSchema:
    return {"type": "integer", "minimum": 1, "maximum": most}


DRY_RUN: JsonSchema = {"type": "boolean"}
COMMANDS = tuple(each.command for each in PATHS.values())


class ApiOperation(NamedTuple):
    method: Literal["get", "post", "delete"]
    path: str
    summary: str
    answers: Mapping[int, Any]
    """The type of the body by status; a string is a media type that is not JSON."""
    query: Mapping[str, JsonSchema] = {}
    body: Any = None
    """The type of the body, or the schema itself."""


async def show_document(_: web.Request) -> web.Response:
    """The document of this manager."""
    return web.Response(body=_encoded(), content_type="application/json")


@cache
def _encoded() -> bytes:
    return msgspec.json.encode(document(VERSION))


class UpAnswer(msgspec.Struct, frozen=True):
    """The state of a manager, in a word."""

    status: str


class IndexAnswer(msgspec.Struct, frozen=True):
    """The index of a manager."""

    tenure: str
    role: str
    paths: list[str]


def operations() -> Iterator[ApiOperation]:
    yield from _of_the_manager()
    yield from _of_pools("/v1/pools/{pool}")
    yield from _of_clusters("/v1/clusters/{cluster}")
    for path, verb in PATHS.items():
        yield ApiOperation("post", path, verb.help, {200: verb.answer}, body=_body(verb))


def _of_the_manager() -> Iterator[ApiOperation]:
    sign_in = "/v1/sign-in"
    yield from (
        ApiOperation("get", "/", "What there is.", {200: IndexAnswer}),
        ApiOperation("get", "/healthz", "Whether the process is up.", {200: UpAnswer}),
        ApiOperation("get", "/readyz", "Whether it leads, or knows who does.", {200: UpAnswer}),
        ApiOperation("get", "/metrics", "Numbers for Prometheus.", {200: "text/plain"}),
        ApiOperation("get", OPENAPI_PATH, "This document.", {200: dict[str, Any]}),
        ApiOperation("get", "/v1/status", "How the manager is.", {200: StatusAnswer}),
        ApiOperation("get", "/v1/managers", "How all managers are.", {200: ManagersAnswer}),
        ApiOperation(
            "post",
            RESOLVE_PATH,
            "Decide which of two journals is over.",
            {200: of_pools.JournalDecided},
            body=Decision,
        ),
        ApiOperation("get", sign_in, "As what the page is here.", {200: SignInAnswer}),
        ApiOperation(
            "post", sign_in, "Sign the page in by a token.", {200: SignInAnswer}, body=ShownToken
        ),
        ApiOperation("delete", sign_in, "Sign the page out.", {200: dict[str, Any]}),
    )


def _of_pools(pool: str) -> Iterator[ApiOperation]:
    yield from (
        ApiOperation("get", "/v1/pools", "All pools.", {200: of_pools.Pools}),
        ApiOperation(
            "post",
            "/v1/pools",
            "Make a pool.",
            {200: of_pools.PoolMade, 201: of_pools.PoolMade},
            body=NewPool,
        ),
        ApiOperation(
            "delete",
            pool,
            "Forget a pool that has no owners.",
            {200: of_pools.PoolDeleted},
            {"dry_run": DRY_RUN},
        ),
        ApiOperation(
            "get",
            f"{pool}/table",
            "The lease table, or what changed in it.",
            {200: of_pools.TableAnswer},
            {"since": NUMBER, "journal": {"type": "string", "pattern": "^[0-9a-f]{1,16}$"}},
        ),
        ApiOperation("get", f"{pool}/owners", "The owners of a pool.", {200: of_pools.Owners}),
        ApiOperation("get", f"{pool}/hour", "How its last hour was.", {200: PoolHour}),
        ApiOperation("get", f"{pool}/hottest", "Its hottest keys.", {200: of_pools.HottestKeys}),
        ApiOperation("get", f"{pool}/locate", "Who has a key.", {200: of_pools.Location}, KEY),
        ApiOperation("get", f"{pool}/why", "Why it is there.", {200: of_pools.KeyExplained}, KEY),
        ApiOperation(
            "get",
            f"{pool}/entities",
            "Keys of entities.",
            {200: KeysPage},
            {"prefix": TEXT, "after": TEXT, "most": _up_to(PAGE_KEYS)},
        ),
        ApiOperation(
            "get",
            f"{pool}/entity",
            "What one entity is.",
            {200: ShownEntity},
            {**KEY, "collection": TEXT, "after": TEXT, "most": _up_to(PAGE_ITEMS)},
        ),
        ApiOperation("get", EXPORT_PATH, "All entities, as lines of JSON.", {200: EXPORT_TYPE}),
        ApiOperation("post", IMPORT_PATH, "Put entities in.", {200: ImportAnswer}, body=ImportBody),
        ApiOperation("get", f"{pool}/plan", "What would move now.", {200: of_pools.PlanRead}),
    )


def _of_clusters(cluster: str) -> Iterator[ApiOperation]:
    yield from (
        ApiOperation("get", "/v1/clusters", "All clusters.", {200: of_clusters.ClustersListed}),
        ApiOperation(
            "post",
            "/v1/clusters",
            "Make a cluster.",
            {200: of_clusters.ClusterMade, 201: of_clusters.ClusterMade},
            body=NewCluster,
        ),
        ApiOperation(
            "delete",
            cluster,
            "Forget a cluster.",
            {200: of_clusters.ClusterForgotten},
            {"dry_run": DRY_RUN},
        ),
        ApiOperation("get", f"{cluster}/ring", "Its ring.", {200: of_clusters.RingRead}),
        ApiOperation(
            "get",
            f"{cluster}/moves",
            "Which tokens should move.",
            {200: of_clusters.MovesRead},
            {"budget": NUMBER},
        ),
        ApiOperation(
            "get",
            f"{cluster}/upkeep",
            "What nodes do unasked.",
            {200: of_clusters.UpkeepRead},
        ),
    )


def document(version: str) -> JsonSchema:
    """The document, in OpenAPI 3.1."""
    listed = list(operations())
    types = list({repr(kind): kind for kind in _types(listed)}.values())
    schemas, components = msgspec.json.schema_components([*types, *COMMANDS], ref_template=REF)
    for command in COMMANDS:  # whose fields are in the paths
        del components[command.__name__]
    schema_of = dict(zip(map(repr, types), schemas, strict=False))
    paths: dict[str, JsonSchema] = {}
    for each in listed:
        paths.setdefault(each.path, {})[each.method] = _described(each, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "tenure manager", "version": version},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _types(listed: Sequence[ApiOperation]) -> Iterator[Any]:
    yield Problem
    for each in listed:
        said = (each.body, *each.answers.values())
        yield from (kind for kind in said if kind is not None and not isinstance(kind, dict | str))


def _described(of: ApiOperation, schema_of: Mapping[str, JsonSchema]) -> JsonSchema:
    responses = {
        str(status): {"description": "done", **_content(kind, schema_of)}
        for status, kind in of.answers.items()
    }
    for status, said in REFUSALS.items():
        responses[str(status)] = {"description": said, **_content(Problem, schema_of)}
    described: JsonSchema = {
        "summary": of.summary,
        "operationId": f"{of.method}{re.sub('[^a-z]+', '_', of.path)}".rstrip("_"),
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {**TEXT, "minLength": 1}}
            for name in re.findall(r"{(\w+)}", of.path)
        ]
        + [{"name": name, "in": "query", "schema": it} for name, it in of.query.items()],
        "responses": responses,
    }
    if of.body is not None:
        schema = of.body if isinstance(of.body, dict) else schema_of[repr(of.body)]
        described["requestBody"] = {
            "required": not isinstance(of.body, dict),
            "content": {"application/json": {"schema": schema}},
        }
    return described


def _content(kind: Any, schema_of: Mapping[str, JsonSchema]) -> JsonSchema:  # noqa: ANN401  # a type
    match kind:
        case str():
            return {"content": {kind: {"schema": TEXT}}}
        case _:
            return {"content": {"application/json": {"schema": schema_of[repr(kind)]}}}


def _body(verb: Verb) -> JsonSchema:
    """The body of a command: its fields but that which is in the path, and its key, which may be
    written in three ways; a token is in hexadecimal.
    """
    _, components = msgspec.json.schema_components([verb.command], ref_template=REF)
    whole = components[verb.command.__name__]
    inside = (verb.place, "key")
    fields = {name: it for name, it in whole["properties"].items() if name not in inside}
    if "token" in fields:
        fields["token"] = {"anyOf": [HEX, {"type": "null"}]}
    if "key" in whole["properties"]:
        fields |= KEY
    required = [name for name in whole.get("required", ()) if name in fields and name not in KEY]
    return {
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": False,
    }
