"""What an owner reports of its load: requests, and what its keys take up by other metrics."""

from typing import Annotated, TypeAlias

import msgspec

from tenure.base.keys import RangeKey
from tenure.base.numbers import Number
from tenure.protocol.lease import limits
from tenure.protocol.lease.range_item import RangeItem

MetricName: TypeAlias = Annotated[str, msgspec.Meta(max_length=limits.METRIC_CHARACTERS)]
HotName: TypeAlias = Annotated[str, msgspec.Meta(max_length=limits.HOT_NAME_CHARACTERS)]


class RangeLoad(RangeItem, frozen=True, kw_only=True):
    """The requests for one range."""

    rate: float
    """The rate in requests a second: checks, or whatever the owner records."""


class KeyLoad(msgspec.Struct, frozen=True, array_like=True, gc=False, kw_only=True):
    """The requests for one key."""

    key: RangeKey
    rate: float


class LevelLoad(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """How much of something other than requests the keys of an owner take up, such as memory."""

    metric: MetricName
    ranges: Annotated[tuple[RangeLoad, ...], msgspec.Meta(max_length=limits.RANGES_PER_REPORT)]
    """What the ranges take up, in order; none if that is nothing."""
    hottest: Annotated[tuple[KeyLoad, ...], msgspec.Meta(max_length=limits.KEYS_PER_REPORT)] = ()
    """The keys that take up most."""
    sample: Annotated[tuple[RangeKey, ...], msgspec.Meta(max_length=limits.SAMPLE_PER_REPORT)] = ()
    """Of an ordered pool: keys with equal amounts between them, in order."""


class LoadReport(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The counts of an owner in the last `span_ns`: a hint, which may be lost or late."""

    span_ns: Number
    ranges: Annotated[tuple[RangeLoad, ...], msgspec.Meta(max_length=limits.RANGES_PER_REPORT)]
    """The loads of the ranges that it held all that time, in order."""
    hottest: Annotated[tuple[KeyLoad, ...], msgspec.Meta(max_length=limits.KEYS_PER_REPORT)] = ()
    names: Annotated[tuple[HotName, ...], msgspec.Meta(max_length=limits.HOT_NAMES)] = ()
    """What the application calls the first of these; empty where the owner does not know it."""
    sample: Annotated[tuple[RangeKey, ...], msgspec.Meta(max_length=limits.SAMPLE_PER_REPORT)] = ()
    """Of an ordered pool: keys drawn evenly from all that were met but the hottest, in order."""
    levels: Annotated[tuple[LevelLoad, ...], msgspec.Meta(max_length=limits.LEVELS_PER_REPORT)] = ()
    """The metrics beside requests that the owner has a capacity for."""
