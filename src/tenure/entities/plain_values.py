"""Values of the application as they are exported: plain JSON where that says the same, and
otherwise objects with one name that begins with a dollar.

Whatever a value is, it comes back as the very bytes that were kept: what no spelling of these can
say is written as its bytes.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import datetime
from math import isfinite
from typing import Any

import msgspec

from tenure.errors import MALFORMED
from tenure.protocol.entity.export_lines import VALUE_BYTES

_pack = msgspec.msgpack.Encoder().encode
_unpack: Callable[[bytes], Any] = msgspec.msgpack.Decoder().decode
_write = msgspec.json.Encoder().encode
_read: Callable[[msgspec.Raw], Any] = msgspec.json.Decoder().decode
KEPT_BYTES = "$msgpack"
"""The name of a value that is written as the bytes that are kept."""
Plain = Any


def to_json(data: bytes) -> msgspec.Raw:
    """A value that is kept."""
    try:
        found = _write(_spelled(_unpack(data)))
        if len(found) <= VALUE_BYTES and from_json(msgspec.Raw(found)) == data:
            return msgspec.Raw(found)
    except (*MALFORMED, TypeError, OverflowError):
        pass  # it is written as bytes
    return msgspec.Raw(_write({KEPT_BYTES: b64encode(data).decode()}))


def from_json(value: msgspec.Raw) -> bytes:
    """The bytes to keep of a value that was exported. Raises ValueError for what is none."""
    found = _read(value)
    if isinstance(found, dict) and found.keys() == {KEPT_BYTES}:
        data = _bytes(found[KEPT_BYTES])
        _unpack(data)
        return data
    try:
        return _pack(_meant(found))
    except (TypeError, OverflowError, AttributeError) as error:
        raise ValueError(f"the value cannot be kept: {error}") from None


def same_spelling(value: msgspec.Raw) -> msgspec.Raw:
    """The value as an export writes it. Raises ValueError for what is none."""
    return to_json(from_json(value))


def _spelled(plain: Plain) -> Plain:
    match plain:
        case float() if not isfinite(plain):
            return {"$float": repr(plain)}
        case bytes():
            return {"$bytes": b64encode(plain).decode()}
        case datetime():
            return {"$time": plain.isoformat()}
        case msgspec.msgpack.Ext():
            return {"$ext": [plain.code, b64encode(plain.data).decode()]}
        case list():
            return [_spelled(each) for each in plain]
        case dict():
            if all(isinstance(name, str) and not name.startswith("$") for name in plain):
                return {name: _spelled(each) for name, each in plain.items()}
            return {"$map": [[_spelled(name), _spelled(each)] for name, each in plain.items()]}
    return plain


def _meant(value: Plain) -> Plain:
    match value:
        case list():
            return [_meant(each) for each in value]
        case dict():
            name = next(iter(value), "")
            if not name.startswith("$"):
                return {name: _meant(each) for name, each in value.items()}
            if len(value) != 1:
                raise ValueError(f"{name} stands beside other names, and must be alone")
            return _unspelled(name, value[name])
    return value


def _unspelled(name: str, value: Plain) -> Plain:
    match name, value:
        case "$float", str():
            return float(value)
        case "$bytes", str():
            return _bytes(value)
        case "$time", str():
            return datetime.fromisoformat(value)
        case "$ext", [int(code), str(data)]:
            return msgspec.msgpack.Ext(code, _bytes(data))
        case "$map", list():
            return dict(map(_entry, value))
    raise ValueError(
        f"{name[:100]!r} means nothing here: names that begin with a dollar are $bytes, $time, "
        f"$float, $ext, $map and {KEPT_BYTES}"
    )


def _entry(value: Plain) -> tuple[Plain, Plain]:
    match value:
        case [key, each]:
            return _meant(key), _meant(each)
    raise ValueError(f"an entry of a $map is a key and a value, not {value!r:.100}")


def _bytes(text: Plain) -> bytes:
    match text:
        case str():
            return b64decode(text, validate=True)
    raise ValueError(f"bytes are a text in base64, not {text!r:.100}")
