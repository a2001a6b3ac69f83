"""How items of collections become bytes: anything that msgspec encodes, or a Pydantic model."""

from typing import Any

import msgspec

from tenure.base.names import shown
from tenure.client.hand_off.state_fields import is_pydantic
from tenure.entities.state_codec import pydantic_codec
from tenure.errors import ConfigurationError, ValueTypeError

ITEM_BYTES = 1 << 16
"""The most bytes of an item: a page has many, and so has a commit."""


class ItemCodec:
    """The codec of one type of item."""

    def __init__(self, item: Any) -> None:  # noqa: ANN401  # of any form
        self._item = item
        try:
            if is_pydantic(item):
                self._encode, self._decode = pydantic_codec(item)
            else:
                self._encode = msgspec.msgpack.Encoder().encode
                self._decode = msgspec.msgpack.Decoder(item).decode
        except TypeError as error:
            raise ConfigurationError(
                f"{shown(item)} cannot be the type of items: {error}. Use one that msgspec knows, "
                "or a Pydantic model"
            ) from None

    def encode(self, where: str, item: object) -> bytes:
        """Encode an item. Raises ValueTypeError if it cannot be kept."""
        try:
            data = self._encode(item)
            self._decode(data)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueTypeError(
                f"{shown(item)} cannot be kept in {where}, whose items are "
                f"{getattr(self._item, '__name__', self._item)}: {error}"
            ) from None
        if len(data) > ITEM_BYTES:
            raise ValueTypeError(
                f"an item of {where} has {len(data)} bytes; at most {ITEM_BYTES} are allowed: "
                "keep large values elsewhere, by reference"
            )
        return data

    def decode(self, where: str, data: bytes) -> Any:  # noqa: ANN401  # the user's
        """Decode an item. Raises ValueTypeError if another version of the class kept what this one
        cannot read.
        """
        try:
            return self._decode(data)
        except ValueError as error:
            raise ValueTypeError(
                f"an item of {where} was kept by another version of its class, which this one "
                f"cannot read: {error}. New fields need a default, and a field keeps its type"
            ) from None
