"""The input and output of `tenure columns`: names and values as they are typed, rows as lines."""

import json
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from tenure.cli.output import put, say
from tenure.columns.results import Column, Page, Row, SuperColumn
from tenure.columns.tables import Table
from tenure.errors import ConfigurationError
from tenure.observe.events import printable
from tenure.protocol.replication.row.names import NameType


def parsed_path(table: Table, path: Iterable[str]) -> list[Any]:
    """The names of a path, in their types."""
    family, *names = [*path] or [""]
    if not family:
        return []
    of = table.families.get(family)
    if of is None:
        raise ConfigurationError(
            f"the table {table.name!r} has no family {family!r}; it has {', '.join(table.families)}"
        )
    types = [of.columns] if of.supers is None else [of.supers, of.columns]
    if len(names) > len(types):
        raise ConfigurationError(f"the path is too long: {' '.join(path)}")
    return [family, *(parsed(kind, name) for kind, name in zip(types, names, strict=False))]


def parsed(of: NameType, text: str) -> Any:  # noqa: ANN401 - of that type
    """A name as it is typed: bytes as text, or in hexadecimal behind 0x."""
    try:
        if of.python is bytes:
            return raw(text)
        return UUID(text) if of.python is UUID else of.python(text)
    except ValueError as error:
        raise ConfigurationError(f"{text!r} is not of type {of.word}: {error}") from None


def raw(text: str) -> bytes:
    """Bytes as they are typed."""
    return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()


def shown_name(name: object) -> str:
    """A name or a value as it would be typed."""
    if not isinstance(name, bytes):
        return str(name)
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return "0x" + name.hex()
    return text if text.isprintable() and not text.startswith("0x") else "0x" + name.hex()


def tell(found: Any, *, as_json: bool) -> None:  # noqa: ANN401 - what a store returns
    """Print what was found, as lines with tabs or as JSON."""
    if as_json:
        say(json.dumps(plain(found)))
    elif found is None:
        say("there is no such column")
    else:
        for line in lines(found):
            put("\t".join(printable(each) for each in line))


def tell_done(sentence: str, *, as_json: bool, **figures: object) -> None:
    """Print what a command has done, as a sentence or as one JSON object."""
    say(json.dumps(figures) if as_json else sentence)


def lines(found: Any) -> Iterable[list[str]]:  # noqa: ANN401 - what a store returns
    """Return a line for each column, with its path before it."""
    match found:
        case Column():
            value = found.value if isinstance(found.value, bytes) else json.dumps(found.value)
            yield [shown_name(found.name), shown_name(value), str(found.version.time)]
        case Row():
            for family, page in found.families.items():
                yield from ([shown_name(found.key), family, *line] for line in lines(page))
        case SuperColumn():
            for column in found.columns:
                yield from ([shown_name(found.name), *line] for line in lines(column))
        case Page():
            for each in found:
                yield from lines(each)
        case _:
            raise AssertionError(found)


def plain(found: Any) -> Any:  # noqa: ANN401 - what a store returns
    """The same for JSON."""
    match found:
        case Column():
            value = shown_name(found.value) if isinstance(found.value, bytes) else found.value
            return {"name": _plain_name(found.name), "value": value, "time": found.version.time}
        case SuperColumn():
            columns = [plain(each) for each in found.columns]
            return {"name": _plain_name(found.name), "columns": columns}
        case Row():
            families = {name: plain(page) for name, page in found.families.items()}
            return {"key": _plain_name(found.key), "families": families}
        case Page():
            return [plain(each) for each in found]
        case _:
            return found


def _plain_name(name: object) -> object:
    return name if isinstance(name, int | float | str) else shown_name(name)
