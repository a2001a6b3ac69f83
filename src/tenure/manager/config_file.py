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
from typing import Any

import msgspec

from tenure.errors import ConfigurationError
from tenure.manager.config import ManagerSettings
from tenure.manager.limits import ManagerLimits
from tenure.manager.pool_spec import HexKey, key_of, pool_spec
from tenure.protocol.lease.leader.events import CreatePool

SETTINGS: dict[str, type] = {
    "host": str,
    "port": int,
    "journal": str,
    "state_dir": str,
    "preset": str,
    "advertise": str,
    "create_pools": bool,
    "insecure": bool,
    "known_as": list,
    "others": list,
    "realm": str,
    "tls_cert": str,
    "tls_key": str,
    "tls_client_ca": str,
    "tokens": str,
    "viewers_see_contents": bool,
    "audit_log": str,
    "hide_hot_keys": bool,
}
FILES = ("state_dir", "tls_cert", "tls_key", "tls_client_ca", "tokens", "audit_log")
"""Settings that name files; as the TOML file has them, from the working directory on."""
LISTS = ("known_as", "others")
POOL_KEYS = ("name", "kind", "split_points")
NOT_HERE = {
    "first_start": "it applies to one start of a manager: pass it as --first-start",
}
NAMES: dict[type, str] = {
    str: "text in quotes",
    int: "a whole number",
    bool: "true or false",
    list: "a list of names",
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
        _check_type(f"{file}: {key}", value, SETTINGS[key])
    for key in FILES:
        if key in table:
            table[key] = Path(table[key])
    for key in LISTS:
        names = table.get(key, [])
        if not all(isinstance(name, str) for name in names):
            raise ConfigurationError(f"{file}: {key} is {names!r}, and should be {NAMES[list]}")
        if key in table:
            table[key] = tuple(names)
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


def _check_type(where: str, value: object, wanted: type) -> None:
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise ConfigurationError(f"{where} is {value!r}, and should be {NAMES[wanted]}")


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
