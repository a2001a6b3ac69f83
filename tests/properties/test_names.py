"""Encodings of names keep their order, and are read back."""

from itertools import pairwise
from math import isnan
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tenure.protocol.replication.row.cells import cell_of
from tenure.protocol.replication.row.layout import inverted
from tenure.protocol.replication.row.names import escaped, name_type, unescaped
from tenure.protocol.replication.row.versions import Version, version_of

INTS = st.integers(-(1 << 63), (1 << 63) - 1)
FLOATS = st.floats(allow_nan=False).map(lambda each: each + 0.0)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VERSIONS = st.builds(Version, st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 63) - 1))


def check(of: type, names: list[Any]) -> None:
    kind = name_type(of, "x")
    ordered = sorted(set(names))
    encoded = [kind.encoded(each, "x") for each in ordered]
    assert [kind.decode(each) for each in encoded] == ordered
    assert all(one < other for one, other in pairwise(encoded))
    assert all(one < other for one, other in pairwise(escaped(each) for each in encoded))


@given(st.lists(INTS))
def test_integers(names: list[int]) -> None:
    check(int, names)


@given(st.lists(FLOATS))
def test_floats(names: list[float]) -> None:
    assert not any(isnan(each) for each in names)
    check(float, names)


@given(st.lists(TEXTS))
def test_text(names: list[str]) -> None:
    check(str, names)


@given(st.lists(st.uuids()))
def test_uuids(names: list[UUID]) -> None:
    check(UUID, names)


@given(st.lists(st.binary()), st.binary())
def test_an_escaped_name_ends_where_it_says_and_begins_no_other(
    names: list[bytes], behind: bytes
) -> None:
    check(bytes, names)
    for each in names:
        text = escaped(each)
        assert unescaped(text + behind) == (each, len(text))
        assert not any(escaped(other).startswith(text) for other in names if other != each)
    ordered = sorted(set(names))
    assert sorted(escaped(each) + behind for each in ordered) == [
        escaped(each) + behind for each in ordered
    ]


def test_zero_has_one_name() -> None:
    kind = name_type(float, "x")
    assert kind.encoded(-0.0, "x") == kind.encoded(0.0, "x")


@given(st.lists(VERSIONS, min_size=1))
def test_versions_compare_as_their_bytes_do(versions: list[Version]) -> None:
    packed = sorted(each.packed() for each in versions)
    assert [version_of(each) for each in packed] == sorted(versions)
    times = sorted(each.time.to_bytes(8) for each in versions)
    assert sorted((inverted(each) for each in times), reverse=True) == [
        inverted(each) for each in times
    ]


CELLS = st.builds(
    lambda version, value: cell_of(version.packed(), value),
    st.builds(Version, st.integers(0, 2), st.integers(0, 2)),
    st.sampled_from([None, b"", b"a", b"b"]),
)


@given(CELLS, CELLS, CELLS)
def test_merging_commutes_associates_and_repeats(a: bytes, b: bytes, c: bytes) -> None:
    merged = max
    left, right = merged(a, b), merged(b, c)
    assert left == merged(b, a)
    assert merged(a, right) == merged(left, c)
    assert merged(left, a) == left


@given(st.sampled_from([b"", b"a", b"\xff" * 9]), VERSIONS)
def test_at_a_tie_a_delete_beats_a_value_and_the_larger_value_the_smaller(
    value: bytes, version: Version
) -> None:
    packed = version.packed()
    assert cell_of(packed, None) > cell_of(packed, value)
    assert cell_of(packed, value + b"\0") > cell_of(packed, value)
    later = Version(version.number, version.time + 1).packed()
    assert cell_of(later, b"") > cell_of(packed, None)
