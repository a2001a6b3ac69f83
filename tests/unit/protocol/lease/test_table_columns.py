"""A table as columns says what its entries say, and nothing that is not a table is taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenure.base.keys import KEY_BYTES
from tenure.base.ranges import KeyRange
from tenure.client.routes import Routes
from tenure.protocol.lease.lookup.events import ColumnTable, RoutingTable
from tenure.protocol.lease.messages import OwnerInfo
from tenure.protocol.lease.table import Right, columns_of, entries_of, entry_of
from tenure.protocol.lease.table_columns import DIGEST_BYTES, TableColumns, packed, unpacked

NUMBERS = st.integers(0, (1 << 63) - 1) | st.integers(0, 300)
DIGEST = st.binary(min_size=DIGEST_BYTES, max_size=DIGEST_BYTES)
STARTS = st.sets(DIGEST, max_size=20) | st.sets(st.binary(min_size=1, max_size=12), max_size=20)


def made(starts: list[bytes], numbers: int = 1) -> TableColumns:
    rights = [Right(owner=i % 3, number=i + numbers, since=numbers) for i in range(len(starts))]
    return columns_of(starts, rights)


HASHED = made([b"", b"\x00" * 8, b"\x00" * 7 + b"\x01", b"\xff" * 8])
ORDERED = made([b"", b"a", b"ab", b"b"], 70_000)


@given(starts=STARTS, data=st.data())
def test_entries_become_columns_and_entries_again(starts: set[bytes], data: st.DataObject) -> None:
    bounds = [b"", *sorted(starts)]
    rights = [Right(*data.draw(st.tuples(NUMBERS, NUMBERS, NUMBERS))) for _ in range(len(bounds))]
    columns = columns_of(bounds, rights)
    columns.check()
    ranges = map(KeyRange, bounds, [*bounds[1:], None])
    assert entries_of(columns) == tuple(map(entry_of, ranges, rights))


@given(st.lists(NUMBERS, min_size=1))
def test_a_column_is_as_wide_as_its_largest_number(numbers: list[int]) -> None:
    column = packed(numbers)
    assert unpacked(column, len(numbers)) == tuple(numbers)
    width = len(column) // len(numbers)
    assert max(numbers) < 256**width
    assert width == 1 or max(numbers) >= 256 ** (width // 2)


def test_the_starts_of_a_hashed_pool_need_no_lengths() -> None:
    assert HASHED.lengths == b""
    assert ORDERED.lengths == bytes((1, 2, 1))
    for columns in (HASHED, ORDERED, made([b""])):
        columns.check()


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (replace(HASHED, ranges=0), "a table of 0 ranges"),
        (replace(HASHED, ranges=(1 << 17) + 1), "a table of 131073 ranges"),
        (replace(HASHED, ranges=3), "a column of 4 bytes, for 3 numbers"),
        (replace(HASHED, owners=b""), "a column of 0 bytes, for 4 numbers"),
        (replace(HASHED, sinces=bytes(12)), "a column of 12 bytes, for 4 numbers"),
        (replace(HASHED, numbers=b"\xff" * 32), "a number above"),
        (replace(HASHED, starts=HASHED.starts[:-1]), "starts of 23 bytes in all"),
        (replace(HASHED, starts=HASHED.starts[8:] + bytes(8)), "not in order"),
        (replace(HASHED, starts=HASHED.starts[:16] + HASHED.starts[8:16]), "not in order"),
        (replace(ORDERED, starts=b"abaa"), "not in order"),
        (replace(ORDERED, starts=b"aa"), "starts of 2 bytes in all"),
        (replace(ORDERED, lengths=bytes((0, 3, 1))), "not in order"),
        (replace(ORDERED, lengths=b"\x01"), "a column of 1 bytes, for 3 numbers"),
        (replace(made([b""]), lengths=b"\x01"), "a column of 1 bytes, for 0 numbers"),
        (made([b"", b"a" * (KEY_BYTES + 1)]), "too long a start"),
    ],
)
def test_what_is_not_a_table_is_refused(columns: TableColumns, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        columns.check()


class Counting(ColumnTable):
    """Says when it is asked."""

    asked = 0

    @property
    def starts(self) -> tuple[bytes, ...]:
        type(self).asked += 1
        return super().starts


def test_nothing_is_made_of_a_table_before_a_key_is_looked_for() -> None:
    owners = {i: OwnerInfo(incarnation=i, name=f"{i}", address=f"http://{i}") for i in (1, 2)}
    table = Counting(HASHED, owners, "ordered")
    routes = Routes(table)
    assert Counting.asked == 0
    assert routes.find(b"\x00" * 8) == "http://1"
    assert routes.find(b"") is None
    assert Counting.asked == 2
    plain = RoutingTable(table.starts, table.addresses, "ordered", in_contact=True)
    assert Routes(plain).table() == routes.table()
