"""The types of all that is decoded from outside: found in the source, where it is decoded.

Most decoders name their type where they are called. A few get it as an argument; `PASSED` says from
where these have it. So a new decoder is found by itself, and fails the test if its type is neither
named nor passed by one of these.
"""

import ast
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

from tenure.manager.command_bodies import body_type
from tenure.manager.operator_verbs import PATHS
from tenure.protocol.topology.records import Placement
from tenure.services.catalogue import PLACES, service_type
from tenure.services.operations import operations_in
from tests.hostile.test_every_decoder import is_not_hostile
from tests.repo.reading import Module, modules

TYPE_AT = {"convert": 1, "Decoder": 0, "decoded_body": 1}
"""The place of the type among the arguments of what decodes."""
CODECS = re.compile(r"msgspec|msgspec\.(json|msgpack|toml|yaml)")


class Decoded(NamedTuple):
    """A call that decodes."""

    place: str
    """The module, and the name of what the call is in or is assigned to."""
    kind: Any


OURS = {
    "cache/memory_file.py": "a file of its own",
    "columns/engines/": "files of its own",
    "columns/node/node_directory.py": "files of its own",
    "journals/etcd/": "whoever writes the journal may do everything; bytes are counted",
    "wire/journal_codec.py": "as in journals/",
    "wire/lease_records.py": "as in journals/: records and states, with a checksum",
    "protocol/replication/row/records.py": "rows of its own disk, behind RocksDB's checksums",
    "protocol/replication/upkeep/hints.py": "as rows",
    "manager/access/tokens.py": "a file of the operator's",
    "manager/config_file.py": "a file of the operator's",
    "manager/other_managers.py": "4 MiB at most, of managers that the operator named",
}
"""What is decoded there comes from nobody outside."""

UNTYPED = {
    "errors.py:said_of": "64 KiB at most, of a body that its type has refused",
    "services/operations.py:check_readable": "JSON of any shape, of a body that its type has taken",
    "transport/failures.py:error_of": "`EntityFailure.arguments`, whose type has their bound",
    "manager/entity_answers.py:value_of": "of a field whose type has its bound",
    "entities/plain_values.py:": "values of the application, within the bytes of a line",
    "entities/entity_lines.py:": "values that entities/plain_values.py has read",
    "manager/access/audit.py:_parsed": "64 KiB at most, for a line that is cut",
}


def _bodies() -> list[Any]:
    return [body_type(each) for each in PATHS.values()]


def _of_operations(part: str) -> list[Any]:
    listed = [each for name in PLACES for each in operations_in(service_type(name))]
    return [getattr(each, part) for each in listed if getattr(each, part) is not None]


PASSED: dict[str, Callable[[], list[Any]]] = {
    "manager/http_errors.py:decoded_body": list,  # its callers name them
    "manager/command_bodies.py:read_command": _bodies,
    "services/operations.py:decoded_body": lambda: _of_operations("body"),
    "services/operations.py:decoded_query": lambda: _of_operations("query"),
    "services/serving.py:handle": list,  # see services/operations.py
    "protocol/topology/records.py:_read": lambda: [Placement],
}


def all_decoded() -> dict[str, Any]:
    """The types by their places."""
    found: dict[str, Any] = {}
    for module in modules():
        path = module.path.removeprefix("src/tenure/")
        if not is_not_hostile(path) and not path.startswith(tuple(OURS)):
            found.update(decoded_in(module))
    return found


def decoded_in(module: Module) -> Iterator[tuple[str, Any]]:
    """The types that a module decodes. Raises LookupError for one that is not known."""
    path = module.path.removeprefix("src/tenure/")
    for name, call in _calls(module.tree(), ""):
        place = f"{path}:{name}"
        written = _type_in(call)
        if written is None:
            if place not in UNTYPED:
                raise LookupError(f"{place} decodes without a type")
        elif place in PASSED:
            yield from ((f"{place} {n}", each) for n, each in enumerate(PASSED[place]()))
        else:
            try:
                text = ast.unparse(written)
                yield f"{place} {text}", eval(text, vars(import_module(module.name)))  # noqa: S307
            except NameError:
                raise LookupError(f"{place} decodes a type that it is passed") from None


def _calls(tree: ast.AST, inside: str) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.iter_child_nodes(tree):
        name = inside
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = node.name
        if isinstance(node, ast.Call) and _is_decoding(node.func):
            yield name, node
        yield from _calls(node, name)


def _is_decoding(called: ast.expr) -> bool:
    """Whether it is a decoder's name, or an attribute of that name in msgspec or json."""
    match called:
        case ast.Name(id=name):
            return name in TYPE_AT
        case ast.Attribute(attr=attr, value=value):
            of = ast.unparse(value)
            is_ours = attr in {"decode", *TYPE_AT} and CODECS.fullmatch(of)
            return bool(is_ours) or f"{of}.{attr}" in ("json.loads", "json.load")
    return False


def _type_in(call: ast.Call) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == "type":
            return keyword.value
    called = call.func
    name = called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)
    place = TYPE_AT.get(name, len(call.args))
    return call.args[place] if len(call.args) > place else None
