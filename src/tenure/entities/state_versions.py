"""The versions of an entity's state: what was kept by an older version of the class is brought up
to date when it is loaded, and what a newer one has kept is not touched.

A class raises its `version` when older processes cannot go on with what it keeps. Without that,
new fields with defaults need no version: processes that do not know them keep them as they are.
The version stands in the state itself, so it is wherever the state is: in every store, and in what
one owner hands to another.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from tenure.base.names import shown
from tenure.client.hand_off.state_fields import Kind, former_names, is_by_place
from tenure.errors import ConfigurationError, EntityError, NewerState, ValueTypeError

VERSION_FIELD = "tenure:version"
"""The name of the version among the fields of a state. States of version 1 do not have it."""
FIRST = 1
ARRIVING = 1 << 62
"""The version of a state of which an import has not brought everything yet: nobody can read it."""
Fields: TypeAlias = dict[str, Any]
Raws: TypeAlias = dict[str, msgspec.Raw]

_encode = msgspec.msgpack.Encoder().encode
_raws: msgspec.msgpack.Decoder[Raws] = msgspec.msgpack.Decoder(Raws)
_fields: msgspec.msgpack.Decoder[Fields] = msgspec.msgpack.Decoder(Fields)
_number: msgspec.msgpack.Decoder[int] = msgspec.msgpack.Decoder(int)


class Upgrade:
    """What `@upgrade` makes of a function."""

    def __init__(self, from_version: int, function: Callable[[Fields], Fields]) -> None:
        self.from_version = from_version
        self.function = function


def upgrade(*, from_version: int) -> Callable[[Any], Any]:
    """Mark a static method of an entity that makes, of the fields that this version of the class
    kept, those of the next. It gets them as a dict of plain values, under the names of today, and
    returns a dict. It may run more than once for the same state: it must not do anything else.
    """
    if type(from_version) is not int or from_version < FIRST:
        raise ConfigurationError(
            f"from_version is the number of a version, from {FIRST} on, not {shown(from_version)}"
        )

    def marked(function: Any) -> Upgrade:  # noqa: ANN401  # a function, or a staticmethod
        plain = function.__func__ if isinstance(function, staticmethod) else function
        if not callable(plain):
            raise ConfigurationError(f"@upgrade is for a function, not {shown(function)}")
        return Upgrade(from_version, plain)

    return marked


def checked_version(label: str, version: object) -> int:
    """The version of a class. Raises ConfigurationError if it is none."""
    if type(version) is not int or version < FIRST:
        raise ConfigurationError(
            f"the version of {label} is a number from {FIRST} on, not {shown(version)}"
        )
    return version


class StateVersions:
    """The version of one class, and the way to it from earlier ones."""

    def __init__(self, name: str, version: int, upgrades: Mapping[str, Upgrade], new: Kind) -> None:
        self._name = name
        self.version = version
        self._former = former_names(new)
        self._upgrades: dict[int, Callable[[Fields], Fields]] = {}
        for method, each in upgrades.items():
            if each.from_version >= version:
                raise ConfigurationError(
                    f"{name}.{method} upgrades from version {each.from_version}, and {name} has "
                    f"the version {version}: write `class {name}(..., version="
                    f"{each.from_version + 1})`. A version is never lowered"
                )
            if each.from_version in self._upgrades:
                raise ConfigurationError(
                    f"{name} has two upgrades from version {each.from_version}: make one of them"
                )
            self._upgrades[each.from_version] = each.function
        if self._former and version == FIRST:
            raise ConfigurationError(
                f"{min(self._former)!r} was kept under another name, which is the only one that "
                f"processes of the release before know: write `class {name}(..., "
                f"version={FIRST + 1})`"
            )
        if version > FIRST and is_by_place(new):
            raise ConfigurationError(
                f"{new.__name__} is kept without the names of its fields, because of array_like, "
                f"so {name} cannot have a version: leave out array_like"
            )

    def marked(self, data: bytes) -> bytes:
        """A state with the version that keeps it."""
        if self.version == FIRST:
            return data
        return _encode({VERSION_FIELD: self.version, **_raws.decode(data)})

    def plain(self, data: bytes) -> bytes:
        """A state without its version, for a decoder that takes no field that it does not know."""
        if self.version == FIRST:
            return data
        raws = _raws.decode(data)
        raws.pop(VERSION_FIELD, None)
        return _encode(raws)

    def current(self, key: str | int, data: bytes) -> bytes:
        """The state as this version keeps it. Raises NewerState if a newer version has kept it,
        and EntityError if an upgrade raises; what was kept stays as it is.
        """
        if not data or (self.version == FIRST and VERSION_FIELD.encode() not in data):
            return data
        kept = self._kept_by(key, data)
        if kept == ARRIVING:
            raise NewerState(
                f"{self._name} {key!r:.100} is being imported, and not all of it is here, so "
                "nothing was begun: if nobody is at it any more, run the import again"
            )
        if kept > self.version:
            raise NewerState(
                f"the state of {self._name} {key!r:.100} was kept by version {kept} of the class, "
                f"and this process has version {self.version}, so nothing was begun: a process "
                "with the newer version can serve it. A version is never lowered: to go back, "
                "deploy the old class under a higher one, with an upgrade"
            )
        return data if kept == self.version else self._upgraded(key, data, kept)

    def _kept_by(self, key: str | int, data: bytes) -> int:
        try:
            found = _raws.decode(data).get(VERSION_FIELD)
        except ValueError:  # a state without names, of before it had a version
            return FIRST
        try:
            return FIRST if found is None else _number.decode(found)
        except ValueError as error:
            raise ValueTypeError(
                f"the version of the state of {self._name} {key!r:.100} cannot be read: {error}"
            ) from None

    def _upgraded(self, key: str | int, data: bytes, kept: int) -> bytes:
        what = f"the state of {self._name} {key!r:.100}, kept by version {kept} of the class,"
        try:
            fields = _fields.decode(data)
        except ValueError as error:
            raise ValueTypeError(f"{what} has no named fields: {error}") from None
        fields.pop(VERSION_FIELD, None)
        for name, earlier in self._former.items():
            for each in earlier:
                if name not in fields and each in fields:
                    fields[name] = fields.pop(each)
        for version in range(kept, self.version):
            function = self._upgrades.get(version)
            if function is None:
                continue
            try:
                fields = _checked(function(fields))
            except Exception as error:
                raise EntityError(
                    f"{what} could not be upgraded from version {version}: "
                    f"{type(error).__name__}: {error}. The state is untouched, and nothing was "
                    "begun: mend the upgrade and deploy again"
                ) from error
        return _encode({VERSION_FIELD: self.version, **fields})


def _checked(fields: Any) -> Fields:  # noqa: ANN401  # what an upgrade returned
    if not isinstance(fields, dict):
        raise TypeError(f"it returned {fields!r:.100}, and not the fields as a dict")
    _encode(fields)
    return fields
