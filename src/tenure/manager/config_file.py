"""The manager's configuration file: TOML, with a table for each pool.

    host = "127.0.0.1"
    journal = "sqlite:/var/lib/tenure/journal.sqlite"

    [[pool]]
    name = "documents"
    kind = "ordered"
    split_points = ["g", "n", { hex = "74ff" }]

Somebody believes in the setting of a misspelt key: so unknown keys are refused, and the error names
the nearest known one.
"""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from tenure.errors import ConfigurationError
from tenure.manager.config import ManagerSettings
from tenure.manager.limits import ManagerLimits
from tenure.manager.pool_spec import HexKey, key_of, pool_spec
from tenure.protocol.lease.leader.events import CreatePool

POOL_KEYS = ("name", "kind", "split_points")
NOT_HERE = {
    "first_start": "it applies to one start of a manager: pass it as --first-start",
}
WRITTEN: dict[object, tuple[type, str]] = {
    str: (str, "text in quotes"),
    int: (int, "a whole number"),
    bool: (bool, "true or false"),
    tuple: (list, "a list of names"),
    # As the TOML file has it, from the working directory on.
    Path: (str, "text in quotes"),
}
"""How the type of a setting is written in TOML."""
SETTINGS: dict[str, Any] = {
    name: next((it for it in (kind, get_origin(kind), *get_args(kind)) if it in WRITTEN), str)
    for name, kind in get_type_hints(ManagerSettings).items()
    if name not in (*NOT_HERE, "limits", "pools")
}


def settings_from(file: Path | None, **said: object) -> ManagerSettings:
    """The settings in `file`, where there is one, with what was `said` (and is not None) laid over.

    Raises ConfigurationError, naming file, key and value.
    """
    settings = {} if file is None else read(file)
    settings |= {key: value for key, value in said.items() if value is not None}
    return ManagerSettings(**settings)


def read(file: Path) -> dict[str, Any]:
    """The settings in `file`, checked one by one."""
    table = _parsed(file)
    pools, limits = table.pop("pool", []), table.pop("limits", {})
    check_keys(f"{file}", table, (*SETTINGS, "limits", "pool"))
    for key, value in table.items():
        table[key] = _setting(f"{file}: {key}", value, SETTINGS[key])
    if not isinstance(pools, list) or not all(isinstance(pool, dict) for pool in pools):
        raise ConfigurationError(f"{file}: a pool begins with a line [[pool]], in double brackets")
    table["limits"] = _limits(f"{file}: limits", limits)
    table["pools"] = tuple(
        _pool(f"{file}: pool {number}", pool) for number, pool in enumerate(pools, 1)
    )
    return table


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(
            f"the configuration file {file} cannot be read: {error.strerror or error}"
        ) from error
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError
        raise ConfigurationError(f"the configuration file {file} is not TOML: {error}") from error


def check_keys(where: str, table: Mapping[str, object], known: Iterable[str]) -> None:
    """Raise ConfigurationError for a key that is not among those that are known."""
    for key in table:
        if key in known:
            continue
        if key in NOT_HERE:
            raise ConfigurationError(f"{where}: {key} cannot be configured; {NOT_HERE[key]}")
        nearest = difflib.get_close_matches(key, list(known), 1)
        guess = f"did you mean {nearest[0]}? " if nearest else ""
        there = ", ".join(known)
        raise ConfigurationError(f"{where}: there is no setting {key!r}; {guess}There are: {there}")


def _setting(where: str, value: object, kind: Any) -> object:  # noqa: ANN401  # a type
    written, name = WRITTEN[kind]
    is_good = isinstance(value, written) and (kind is bool or not isinstance(value, bool))
    if not is_good or (isinstance(value, list) and not all(isinstance(it, str) for it in value)):
        raise ConfigurationError(f"{where} is {value!r}, and should be {name}")
    return kind(value)


def _limits(where: str, table: object) -> ManagerLimits:
    if not isinstance(table, dict):
        raise ConfigurationError(f"{where} is {table!r}, and should be a table: [limits]")
    check_keys(where, table, ManagerLimits.__struct_fields__)
    try:
        return msgspec.convert(table, ManagerLimits)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where}: {error}; a limit is a number") from error


def _pool(where: str, table: dict[str, Any]) -> CreatePool:
    check_keys(where, table, POOL_KEYS)
    for key in ("name", "kind"):
        if key not in table:
            raise ConfigurationError(f"{where} has no {key}; a pool has {', '.join(POOL_KEYS)}")
    try:
        points = msgspec.convert(table.get("split_points", []), list[str | HexKey])
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f'{where}: split_points is a list of keys, each text or {{ hex = "..." }}: {error}'
        ) from error
    try:
        return pool_spec(table["name"], table["kind"], [key_of(point) for point in points])
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
