"""The limits of a message: few enough, short enough, in order; anything more is refused."""

import pytest
from msgspec.structs import replace

from tenure.base.keys import KEY_BYTES
from tenure.errors import RemoteProtocolError
from tenure.protocol.lease.limits import OWNERS_PER_POOL
from tenure.protocol.lease.load_report import KeyLoad, LevelLoad, LoadReport, RangeLoad
from tenure.protocol.lease.messages import (
    Changes,
    Copy,
    Entry,
    Expected,
    HandOff,
    Held,
    Leased,
    LeaseRequest,
    SyncResponse,
)
from tenure.protocol.lease.reports import EntityReport, TierReport, VolumeReport, WaitingWrite
from tenure.wire import lease as codec
from tenure.wire import limits
from tenure.wire.versions import NEWEST
from tests.unit.wire.samples import ANSWER, JOIN, OWNERS, REQUEST, SHORT, request


@pytest.mark.parametrize("most", [b"k" * KEY_BYTES])
def test_a_key_is_as_long_as_the_limit_and_no_longer(most: bytes) -> None:
    for held in (Held(start=b"", end=most, number=1), Held(start=most, end=None, number=1)):
        assert isinstance(codec.decode_to_manager(request(held), NEWEST), LeaseRequest)
    for held in (
        Held(start=b"", end=most + b"k", number=1),
        Held(start=most + b"k", end=None, number=1),
    ):
        with pytest.raises(RemoteProtocolError, match="`bytes` of length <= 1024"):
            codec.decode_to_manager(request(held), NEWEST)


def test_too_many_ranges_and_owners_are_refused() -> None:
    held = [Held(start=b"", end=b"a", number=1)] * (limits.RANGES_PER_MESSAGE + 1)
    with pytest.raises(RemoteProtocolError, match="`array` of length <= 131072"):
        codec.decode_to_manager(request(*held), NEWEST)
    owners = OWNERS * (OWNERS_PER_POOL + 1)
    with pytest.raises(RemoteProtocolError, match="`array` of length <= 32768"):
        codec.decode_to_lookup(
            codec.encode(
                Changes(
                    pool="rooms", journal=1, leadership=2, after=3, lsn=4, entries=(), owners=owners
                ),
                NEWEST,
            ),
            NEWEST,
        )


def memory(*ranges: RangeLoad, name: str = "memory") -> LevelLoad:
    return LevelLoad(metric=name, ranges=ranges)


@pytest.mark.parametrize(
    ("load", "complaint"),
    [
        (
            LoadReport(span_ns=1, ranges=(RangeLoad(start=b"", end=None, rate=-1.0),)),
            "a rate of -1.0",
        ),
        (
            LoadReport(span_ns=1, ranges=(RangeLoad(start=b"", end=None, rate=float("nan")),)),
            "a rate of nan",
        ),
        (
            LoadReport(span_ns=1, ranges=(), hottest=(KeyLoad(key=b"k", rate=float("inf")),)),
            "a rate of inf",
        ),
        (
            LoadReport(
                span_ns=1, ranges=(), levels=(memory(RangeLoad(start=b"", end=None, rate=-1.0)),)
            ),
            "a rate of -1.0",
        ),
        (
            LoadReport(span_ns=1, ranges=(), levels=(memory(name="m" * 33),)),
            "`str` of length <= 32",
        ),
        (
            LoadReport(span_ns=1, ranges=(), levels=(memory(),) * 3),
            "`array` of length <= 2",
        ),
        (
            LoadReport(span_ns=1, ranges=(), hottest=(KeyLoad(key=b"k" * 1025, rate=1.0),)),
            "`bytes` of length <= 1024",
        ),
        (
            LoadReport(
                span_ns=1,
                ranges=(
                    RangeLoad(start=b"b", end=None, rate=1.0),
                    RangeLoad(start=b"a", end=None, rate=1.0),
                ),
            ),
            "before the end",
        ),
        (
            LoadReport(span_ns=1, ranges=(RangeLoad(start=b"", end=b"a", rate=1.0),) * 4097),
            "`array` of length <= 4096",
        ),
        (
            LoadReport(span_ns=1, ranges=(), hottest=(KeyLoad(key=b"k", rate=1.0),) * 257),
            "`array` of length <= 256",
        ),
        (
            LoadReport(span_ns=1, ranges=(), sample=(b"k",) * 129),
            "`array` of length <= 128",
        ),
        (
            LoadReport(span_ns=1, ranges=(), sample=(b"k" * 1025,)),
            "`bytes` of length <= 1024",
        ),
    ],
    ids=[
        "negative",
        "nan",
        "infinite",
        "negative level",
        "long metric",
        "metrics",
        "long key",
        "out of order",
        "ranges",
        "keys",
        "sample",
        "long sampled key",
    ],
)
def test_a_load_is_of_few_things_with_rates_that_can_be_added_up(
    load: LoadReport, complaint: str
) -> None:
    for asked in (replace(REQUEST, load=load), replace(SHORT, load=load)):
        with pytest.raises(RemoteProtocolError, match=complaint):
            codec.decode_to_manager(codec.encode(asked, NEWEST), NEWEST)


STRANGE = pytest.mark.parametrize("strange", [float("nan"), float("inf"), -float("inf")])


@STRANGE
def test_what_is_told_to_be_shown_is_of_numbers(strange: float) -> None:
    """JSON writes the others as null: nobody could list the owners of the pool any more."""
    entities = EntityReport(
        kind="Room", instances=1, turns=1, waiting=0, alarms=0, longest_seconds=strange
    )
    write = WaitingWrite(keys="a", seconds=strange, readers=(), missing=0)
    volume = VolumeReport(
        readers=1, leases=1, unacknowledged=0, writes=1, loads=0, waiting=(write,)
    )
    for report in (TierReport(entities=entities), TierReport(volume=volume)):
        for asked in (replace(REQUEST, report=report), replace(SHORT, report=report)):
            with pytest.raises(RemoteProtocolError, match="a value that is not a finite number"):
                codec.decode_to_manager(codec.encode(asked, NEWEST), NEWEST)


@pytest.mark.parametrize(
    "capacity", [0.0, -1.0, float("nan"), float("inf")], ids=["zero", "negative", "nan", "inf"]
)
def test_a_capacity_is_a_positive_number(capacity: float) -> None:
    join = replace(JOIN, capacity=capacity)
    with pytest.raises(RemoteProtocolError, match="capacity"):
        codec.decode_to_manager(codec.encode(join, NEWEST), NEWEST)


@pytest.mark.parametrize(
    "labels",
    [{str(i): "" for i in range(65)}, {"zone": "z" * 201}, {"z" * 201: ""}],
    ids=["many", "long value", "long name"],
)
def test_labels_are_few_and_short(labels: dict[str, str]) -> None:
    join = replace(JOIN, capacity=1.0, labels=labels)
    with pytest.raises(RemoteProtocolError, match="length <= "):
        codec.decode_to_manager(codec.encode(join, NEWEST), NEWEST)


@pytest.mark.parametrize(
    "bounds",
    [
        [(b"b", b"a")],
        [(b"a", b"a")],
        [(b"a", b"")],
        [(b"b", b"c"), (b"a", b"b")],
        [(b"a", b"c"), (b"b", b"d")],
        [(b"a", b"b"), (b"a", b"b")],
        [(b"a", None), (b"b", None)],
        [(b"a", None), (b"b", b"c")],
    ],
)
def test_ranges_listed_as_a_whole_are_sorted_and_do_not_overlap(
    bounds: list[tuple[bytes, bytes | None]],
) -> None:
    leased = tuple(
        Leased(start=start, end=end, number=1, since=1, mark="renewed") for start, end in bounds
    )
    copies = tuple(Copy(start=start, end=end, number=1) for start, end in bounds)
    counting = tuple(Held(start=start, end=end, number=1) for start, end in bounds)
    orders = tuple(
        HandOff(start=start, end=end, number=1, taker=2, address="ws://b") for start, end in bounds
    )
    asked = replace(REQUEST, copies=copies)
    keeping = replace(REQUEST, letting_go=counting)
    expected = tuple(
        Expected(start=start, end=end, number=1, source=2, secret=3) for start, end in bounds
    )
    told = replace(ANSWER, copies=counting)
    ordered = replace(ANSWER, copies=(), hand_offs=orders)
    entries = tuple(
        Entry(start=start, end=end, owner=1, number=1, since=1) for start, end in bounds
    )
    for decode, message in (
        (
            codec.decode_to_manager,
            request(*(Held(start=start, end=end, number=1) for start, end in bounds)),
        ),
        (
            codec.decode_to_owner,
            codec.encode(
                replace(ANSWER, leases=leased),
                NEWEST,
            ),
        ),
        (codec.decode_to_manager, codec.encode(asked, NEWEST)),
        (codec.decode_to_manager, codec.encode(keeping, NEWEST)),
        (codec.decode_to_owner, codec.encode(replace(ANSWER, expected=expected), NEWEST)),
        (codec.decode_to_owner, codec.encode(told, NEWEST)),
        (codec.decode_to_owner, codec.encode(ordered, NEWEST)),
        (
            codec.decode_to_lookup,
            codec.encode(
                SyncResponse(
                    sequence=1,
                    nonce=2,
                    journal=3,
                    leadership=4,
                    lsn=5,
                    kind="hashed",
                    snapshot=True,
                    entries=entries,
                    owners=(),
                    sync_ns=6,
                    contact_ns=7,
                ),
                NEWEST,
            ),
        ),
    ):
        with pytest.raises(RemoteProtocolError, match="a range"):
            decode(message, NEWEST)


@pytest.mark.parametrize("bounds", [(b"b", b"a"), (b"a", b"a")])
def test_a_changed_range_ends_after_its_start(bounds: tuple[bytes, bytes]) -> None:
    changes = Changes(
        pool="rooms",
        journal=1,
        leadership=2,
        after=3,
        lsn=4,
        entries=(Entry(start=bounds[0], end=bounds[1], owner=1, number=1, since=1),),
        owners=(),
    )
    with pytest.raises(RemoteProtocolError, match="not after its start"):
        codec.decode_to_lookup(codec.encode(changes, NEWEST), NEWEST)
