"""tenure.toml as it was read: its tables, and the line on which each setting stands.

A library reads the file. It does not say where a value stood, so the lines of headers and keys are
looked up beside it: a mistake is told with its line.
"""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tenure.base.names import shown
from tenure.errors import ConfigurationError
from tenure.manager.config_file import check_keys

T = TypeVar("T")
FILE = Path("tenure.toml")
MOST_BYTES = 1 << 20
"""Longer files are not read: no host runs so much."""
HEADER = re.compile(r"\s*\[\[?\s*([\w-]+)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"""\s*["']?([\w-]+)["']?\s*=""")
PLACE = re.compile(r" - at `\$\.(\w+)[^`]*`$")


class HostSource:
    """One file, or none."""

    def __init__(self, file: Path | None) -> None:
        """Read `file`, or tenure.toml where there is one. Raises ConfigurationError."""
        self.file = file or FILE
        text = "" if file is None and not FILE.exists() else self._text()
        try:
            self.top: dict[str, Any] = tomllib.loads(text)
        except ValueError as error:
            raise ConfigurationError(f"{self.file} is not TOML: {error}") from None
        self._lines = _lines_of(text)

    def _text(self) -> str:
        try:
            with self.file.open("rb") as opened:
                data = opened.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                raise ConfigurationError(f"{self.file} has more than {MOST_BYTES} bytes")
            return data.decode()
        except OSError as error:
            raise ConfigurationError(f"{self.file} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise ConfigurationError(f"{self.file} is not TOML: {error}") from None

    def at(self, table: str = "", number: int = 0, key: str = "") -> str:
        """The place of a setting, as errors name it."""
        found = self._lines.get((table, number, key)) or self._lines.get((table, number, ""))
        return f"{self.file}:{found}" if found else f"{self.file}"

    def several(self, name: str) -> list[dict[str, Any]]:
        """The tables of this name, each under its [[name]]."""
        found = self.top.get(name, [])
        if isinstance(found, list) and all(isinstance(each, dict) for each in found):
            return found
        raise ConfigurationError(
            f"{self.at(name)}: {name} begins with a line [[{name}]], in double brackets"
        )

    def one(self, name: str) -> dict[str, Any] | None:
        """The table of this name, if it is there."""
        found = self.top.get(name)
        if found is None or isinstance(found, dict):
            return found
        raise ConfigurationError(
            f"{self.at(name)}: {name} begins with a line [{name}], in single brackets"
        )

    def read(
        self, table: dict[str, Any], of: type[T], known: Iterable[str], name: str, number: int = 0
    ) -> T:
        """The table as settings of a command. Raises ConfigurationError."""
        known = list(known)
        for key, value in table.items():
            check_keys(self.at(name, number, key), {key: value}, known)
        try:
            return msgspec.convert(table, of, dec_hook=_path)
        except msgspec.ValidationError as error:
            place = PLACE.search(str(error))
            key = place.group(1) if place else ""
            found = f", not {shown(table[key])}" if key in table else ""
            why = PLACE.sub("", str(error))
            said = f"{key}: {why}" if key else why
            raise ConfigurationError(f"{self.at(name, number, key)}: {said}{found}") from None


def _path(wanted: type, value: object) -> Any:  # noqa: ANN401  # whatever is wanted
    if wanted is Path and isinstance(value, str):
        return Path(value)
    raise ValueError(f"expected {wanted.__name__}")


def _lines_of(text: str) -> dict[tuple[str, int, str], int]:
    """The line of each header and key, by the table, its number among those of its name, and the
    key.
    """
    found: dict[tuple[str, int, str], int] = {}
    counts: dict[str, int] = {}
    table, number = "", 0
    for line, said in enumerate(text.splitlines(), 1):
        if header := HEADER.match(said):
            table = header.group(1)
            number = counts.get(table, 0)
            counts[table] = number + 1
            found.setdefault((table, number, ""), line)
        elif key := KEY.match(said):
            found.setdefault((table, number, key.group(1)), line)
            if not table:
                found.setdefault((key.group(1), 0, ""), line)
    return found
