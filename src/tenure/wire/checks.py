"""Checks of messages and records that types cannot express; they are cheap.

The checks raise ValueError, as the decoder does; each codec turns it into an error of its own.
There is one loop over each list, because it runs for every range of every renewal.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Protocol

from tenure.base.keys import KEY_BYTES, Key
from tenure.protocol.balance.load import HIGHEST_RATE
from tenure.protocol.entity.inspection import SeenEntity
from tenure.protocol.lease.limits import LABEL_CHARACTERS, LABELS_PER_OWNER
from tenure.protocol.lease.load_report import LevelLoad, LoadReport
from tenure.protocol.lease.reports import TierReport
from tenure.wire.limits import RANGES_PER_MESSAGE


class Ranged(Protocol):
    """Anything with the two ends of a range."""

    @property
    def start(self) -> Key: ...
    @property
    def end(self) -> Key | None: ...


def check_each(ranges: Sequence[Ranged]) -> None:
    """Raise ValueError unless every range ends after its start and its bounds are short enough."""
    check_count(ranges)
    for each in ranges:
        start, end = each.start, each.end
        if end is not None and (end <= start or len(end) > KEY_BYTES):
            raise ValueError(_complaint(start, end))
        if len(start) > KEY_BYTES:
            raise ValueError(_complaint(start, end))


def check_in_order(ranges: Sequence[Ranged]) -> None:
    """Do what `check_each` does, and check that the ranges are sorted and do not overlap."""
    check_count(ranges)
    position: Key | None = b""
    for each in ranges:
        start, end = each.start, each.end
        if position is None or start < position:
            raise ValueError(f"a range begins at {_shown(start)}, before the end of the last one")
        if end is not None and (end <= start or len(end) > KEY_BYTES):
            raise ValueError(_complaint(start, end))
        if len(start) > KEY_BYTES:
            raise ValueError(_complaint(start, end))
        position = end


def check_keys(keys: Iterable[Key]) -> None:
    """Raise ValueError if a key is too long."""
    for key in keys:
        if len(key) > KEY_BYTES:
            raise ValueError(_too_long(key))


def check_count(ranges: Sequence[Ranged]) -> None:
    """Raise ValueError if there are too many ranges."""
    if len(ranges) > RANGES_PER_MESSAGE:
        raise ValueError(f"{len(ranges)} ranges; at most {RANGES_PER_MESSAGE} are allowed")


def check_owner(capacity: float, labels: Mapping[str, str]) -> None:
    """Raise ValueError unless the capacity is a positive number that can be compared, and the
    labels are few and short.
    """
    if not (isfinite(capacity) and capacity > 0):
        raise ValueError(f"a capacity of {capacity}; it must be a number above 0")
    if len(labels) > LABELS_PER_OWNER:
        raise ValueError(f"{len(labels)} labels; at most {LABELS_PER_OWNER} are allowed")
    for label, value in labels.items():
        if max(len(label), len(value)) > LABEL_CHARACTERS:
            raise ValueError(
                f"label {label[:40]!r} or its value is longer than {LABEL_CHARACTERS} characters"
            )


def check_load(load: LoadReport) -> None:
    """Raise ValueError unless rates can be added up and are not negative."""
    parts: tuple[LoadReport | LevelLoad, ...] = (load, *load.levels)
    for told in parts:
        check_in_order(told.ranges)
        rates = [each.rate for each in told.ranges]
        for rate in (*rates, *(each.rate for each in told.hottest)):
            if not 0 <= rate <= HIGHEST_RATE:
                raise ValueError(f"a rate of {rate}; it must be from 0 to {HIGHEST_RATE:g}")


def check_report(report: TierReport) -> None:
    """Raise ValueError if JSON cannot show a report: it writes NaN as null, which is unreadable."""
    writes = report.volume.waiting if report.volume else ()
    seconds = [each.seconds for each in writes]
    if report.entities:
        seconds.append(report.entities.longest_seconds)
    if not all(map(isfinite, seconds)):
        raise ValueError("a report has a value that is not a finite number")


def check_seen(seen: SeenEntity) -> None:
    """Raise ValueError if JSON cannot show an entity, as of a report."""
    seconds = [at for each in seen.alarms for at in (each.due, each.next_at)]
    seconds += [each.added for each in seen.page if each.added is not None]
    if not all(map(isfinite, seconds)):
        raise ValueError("an entity has a time that is not a finite number")


def _complaint(start: Key, end: Key | None) -> str:
    for key in (start, end or b""):
        if len(key) > KEY_BYTES:
            return _too_long(key)
    return f"a range from {_shown(start)} ends at {_shown(end or b'')}, not after its start"


def _too_long(key: Key) -> str:
    return f"a key of {len(key)} bytes; at most {KEY_BYTES} are allowed"


def _shown(key: Key) -> str:
    return key.hex() if len(key) <= 16 else f"{key[:16].hex()}..."  # noqa: PLR2004
