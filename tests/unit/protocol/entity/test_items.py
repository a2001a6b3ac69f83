"""Tables of items and their layers, beside naive twins."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.protocol.entity.items import GONE, PART_ITEMS, ItemSpan, ItemTable, merged

PLACES = st.integers(0, 300).map(lambda number: number.to_bytes(2))
DATA = st.sampled_from((GONE, b"a", b"bc"))
CHANGES = st.dictionaries(PLACES, DATA, max_size=200)
SPANS = st.builds(ItemSpan, PLACES, PLACES | st.none(), st.booleans())


def naive(items: dict[bytes, bytes], span: ItemSpan) -> list[tuple[bytes, bytes]]:
    return sorted((each for each in items.items() if each[0] in span), reverse=span.reverse)


@given(st.lists(CHANGES, max_size=6), st.booleans(), SPANS)
def test_a_table_is_the_dict_of_its_changes(
    changes: list[dict[bytes, bytes]], keeps_gone: bool, span: ItemSpan
) -> None:
    table, twin = ItemTable(), dict[bytes, bytes]()
    for each in changes:
        before, was = table, table.plain()
        table = table.after(each, keeps_gone=keeps_gone)
        assert before.plain() == was
        twin |= each
        if not keeps_gone:
            twin = {place: data for place, data in twin.items() if data}
        assert [*table.items()] == sorted(twin.items())
        assert len(table) == len(twin)
        assert table.size == sum(len(place) + len(data) for place, data in twin.items())
    assert [*table.within(span)] == naive(twin, span) == [*span.of(twin)]
    assert all(table.get(bytes([0, i])) == twin.get(bytes([0, i])) for i in range(256))


@given(st.lists(CHANGES, max_size=4), SPANS)
def test_the_uppermost_layer_counts(layers: list[dict[bytes, bytes]], span: ItemSpan) -> None:
    twin: dict[bytes, bytes] = {}
    for each in reversed(layers):
        twin |= each
    left = {place: data for place, data in twin.items() if data}
    found = merged([span.of(each) for each in layers], reverse=span.reverse)
    assert [*found] == naive(left, span)


@given(SPANS, PLACES)
def test_what_is_read_and_the_rest_are_the_span(span: ItemSpan, place: bytes) -> None:
    if place in span:
        every = [bytes([a, b]) for a in (0, 1) for b in range(256)]
        read, rest = span.up_to(place), span.after(place)
        assert place in read
        for each in every:
            assert (each in span) == ((each in read) != (each in rest))


@given(CHANGES, CHANGES)
def test_what_is_copied_leaves_what_came_later(
    copied: dict[bytes, bytes], later: dict[bytes, bytes]
) -> None:
    table = ItemTable.of(copied).after(later, keeps_gone=True).without(copied)
    assert table.plain() == {p: data for p, data in later.items() if copied.get(p) != data}


def test_a_change_shares_what_it_does_not_touch() -> None:
    table = ItemTable.of({i.to_bytes(4): b"x" for i in range(100 * PART_ITEMS)})
    after = table.after({(100_000).to_bytes(4): b"y"}, keeps_gone=True)
    assert sum(one is other for one, other in zip(table._parts, after._parts, strict=False)) == 99
