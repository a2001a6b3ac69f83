"""The base of what is listed range by range."""

from typing import TypeAlias

import msgspec

from tenure.base.keys import RangeKey
from tenure.base.ranges import KeyRange

EndKey: TypeAlias = RangeKey | None


class RangeItem(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """The base of all parts of messages that concern one range."""

    start: RangeKey
    end: EndKey

    @property
    def range(self) -> KeyRange:
        return KeyRange(self.start, self.end)
