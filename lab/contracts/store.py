"""What every store must do, whatever database it uses, as tests.

Subclass `StoreContract`, give it a fixture `open_tables`, and mark it for the plugin that runs your
coroutines:

    @pytest.mark.asyncio
    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_tables(self): ...

`open_tables(*tables)` is an `open_store(url, *tables)` of a store that is empty when the test
begins, and the same for the whole test.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias
from uuid import UUID

from lab.contracts.tables import mail
from tenure.columns.opening import StoreOpening
from tenure.columns.paths import DELETE
from tenure.columns.tables import Family, Table, Writes
from tenure.errors import ConfigurationError, SchemaError

OpenTables: TypeAlias = Callable[..., StoreOpening]


LONG_AGO = 1_000_000_000_000_000
"""A time in microseconds, in 2001."""


def names(page: Any) -> list[Any]:
    """The names of what a page has."""
    return [each.name for each in page]


class StoreContract:
    """Tests that a store must pass; see the module's docstring."""

    writes: Writes = "ordered"
    """How the tables of the tests are written: on a store that orders no writes, by clocks."""
    mail = mail("ordered")

    def table(self, name: str, **how: Any) -> Table:
        """A table that is written like those of all tests."""
        return Table(name, writes=self.writes, **how)

    async def test_a_column_is_read_back(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            version = await store.insert(self.mail, "ann", {"profile": {"name": b"Ann"}})
            column = await store.get(self.mail, "ann", "profile", "name")
            assert (column.name, column.value) == ("name", b"Ann")
            assert column.version == version
            assert await store.get(self.mail, "ann", "profile", "nam") is None
            assert await store.get(self.mail, "an", "profile", "name") is None

    async def test_a_mutation_spans_families(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            await store.insert(
                self.mail,
                "ann",
                {
                    "profile": {"name": b"Ann", "old": DELETE},
                    "terms": {"tea": {17: b"a", -3: b"b"}, "milk": {5: b""}},
                    "log": {b"\0": b"x"},
                },
            )
            row = await store.get(self.mail, "ann")
            assert names(row.families["profile"]) == ["name"]
            assert names(row.families["terms"]) == ["milk", "tea"]
            assert names(row.families["log"]) == [b"\0"]
            assert "threads" not in row.families

    async def test_the_later_write_counts(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            for value in (b"1", b"3", b"2"):
                await store.insert(self.mail, "ann", {"profile": {"name": value}})
            assert (await store.get(self.mail, "ann", "profile", "name")).value == b"2"

    async def test_given_times_decide_in_whatever_order_they_come(
        self, open_tables: OpenTables
    ) -> None:
        async with open_tables(self.mail) as store:
            for time, value in ((3, b"c"), (1, b"a"), (2, b"b")):
                await store.insert(
                    self.mail, "ann", {"profile": {"x": value}}, timestamp=LONG_AGO + time
                )
            column = await store.get(self.mail, "ann", "profile", "x")
            assert (column.value, column.version.time) == (b"c", LONG_AGO + 3)

    async def test_at_a_tie_the_larger_value_counts_and_a_delete_beats_both(
        self, open_tables: OpenTables
    ) -> None:
        async with open_tables(self.mail) as store:
            for value in (b"b", b"a"):
                await store.insert(self.mail, "ann", {"profile": {"x": value}}, timestamp=LONG_AGO)
            assert (await store.get(self.mail, "ann", "profile", "x")).value == b"b"
            await store.delete(self.mail, "ann", "profile", "x", timestamp=LONG_AGO)
            await store.insert(self.mail, "ann", {"profile": {"x": b"c"}}, timestamp=LONG_AGO)
            assert await store.get(self.mail, "ann", "profile", "x") is None

    async def test_pages_go_by_name_both_ways(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            await store.insert(self.mail, "ann", {"profile": dict.fromkeys("cabed", b"")})
            page = await store.get(self.mail, "ann", "profile", first=2)
            assert names(page) == ["a", "b"]
            page = await store.get(self.mail, "ann", "profile", first=2, next=page.next)
            assert names(page) == ["c", "d"]
            page = await store.get(self.mail, "ann", "profile", first=2, next=page.next)
            assert (names(page), page.next) == (["e"], None)
            page = await store.get(self.mail, "ann", "profile", first=3, reverse=True)
            assert names(page) == ["e", "d", "c"]
            page = await store.get(
                self.mail, "ann", "profile", first=3, reverse=True, next=page.next
            )
            assert (names(page), page.next) == (["b", "a"], None)
            page = await store.get(self.mail, "ann", "profile", start="b", end="d")
            assert names(page) == ["b", "c"]
            page = await store.get(self.mail, "ann", "profile", start="b", end="d", reverse=True)
            assert names(page) == ["c", "b"]

    async def test_a_page_that_goes_on_keeps_to_its_bounds(self, open_tables: OpenTables) -> None:
        """Also where they are other bounds than those of the page before."""
        async with open_tables(self.mail) as store:
            await store.insert(self.mail, "ann", {"profile": dict.fromkeys("abcdef", b"")})
            page = await store.get(self.mail, "ann", "profile", first=1)
            later = await store.get(self.mail, "ann", "profile", start="d", next=page.next)
            assert names(later) == ["d", "e", "f"]
            page = await store.get(self.mail, "ann", "profile", first=1, reverse=True)
            lower = await store.get(
                self.mail, "ann", "profile", end="d", next=page.next, reverse=True
            )
            assert names(lower) == ["c", "b", "a"]

    async def test_a_store_may_be_closed_twice(self, open_tables: OpenTables) -> None:
        def body() -> None:
            with open_tables(self.mail) as store:
                store.close()

        async with open_tables(self.mail) as store:
            await store.close()
        await asyncio.to_thread(body)

    async def test_pages_go_by_time_the_newest_first(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            for n in range(5):
                mutation = {"terms": {"tea": {n: b"%d" % n}}}
                await store.insert(self.mail, "ann", mutation, timestamp=LONG_AGO + n)
            page = await store.get(self.mail, "ann", "terms", "tea", first=2)
            assert names(page) == [4, 3]
            page = await store.get(self.mail, "ann", "terms", "tea", first=9, next=page.next)
            assert (names(page), page.next) == ([2, 1, 0], None)
            page = await store.get(self.mail, "ann", "terms", "tea", reverse=True, first=2)
            assert names(page) == [0, 1]
            page = await store.get(
                self.mail, "ann", "terms", "tea", start=LONG_AGO + 3, end=LONG_AGO + 1
            )
            assert names(page) == [3, 2]

    async def test_by_time_a_rewritten_column_moves_and_a_deleted_one_leaves(
        self, open_tables: OpenTables
    ) -> None:
        async with open_tables(self.mail) as store:
            for name in (b"a", b"b", b"c"):
                await store.insert(self.mail, "ann", {"log": {name: b""}})
            await store.insert(self.mail, "ann", {"log": {b"a": b"again"}})
            assert names(await store.get(self.mail, "ann", "log")) == [b"a", b"c", b"b"]
            await store.delete(self.mail, "ann", "log", b"c")
            assert names(await store.get(self.mail, "ann", "log")) == [b"a", b"b"]

    async def test_what_is_deleted_at_any_level_is_gone(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            both = {"terms": {"tea": {1: b"", 2: b""}, "milk": {1: b""}}, "profile": {"x": b""}}
            column = ("terms", "tea", 1)
            for path in (column, column[:2], column[:1], ()):
                await store.insert(self.mail, "ann", both)
                await store.delete(self.mail, "ann", *path)
                assert (await store.get(self.mail, "ann", "terms", "tea", 1)) is None
                left = await store.get(self.mail, "ann", "terms", "tea", 2)
                assert (left is None) == (path != column)
                supers = names(await store.get(self.mail, "ann", "terms"))
                assert supers == [["milk", "tea"], ["milk"], [], []][len(column) - len(path)]
                assert len(await store.get(self.mail, "ann", "profile")) == bool(path)
                page = names(await store.get(self.mail, "ann", "terms", "tea"))
                assert page == ([2] if path == column else [])
                row = await store.get(self.mail, "ann")
                assert ("terms" in row.families) == bool(supers)

    async def test_a_delete_hides_what_is_older_and_comes_later(
        self, open_tables: OpenTables
    ) -> None:
        async with open_tables(self.mail) as store:
            await store.delete(self.mail, "ann", timestamp=LONG_AGO + 1)
            for time, value in ((0, b"0"), (1, b"1")):
                await store.insert(
                    self.mail, "ann", {"profile": {"x": value}}, timestamp=LONG_AGO + time
                )
                assert await store.get(self.mail, "ann", "profile", "x") is None
            await store.insert(self.mail, "ann", {"profile": {"x": b"2"}}, timestamp=LONG_AGO + 2)
            assert (await store.get(self.mail, "ann", "profile", "x")).value == b"2"

    async def test_an_older_delete_takes_no_newer_one_back(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            for path in (("terms", "tea", 1), ("terms", "tea"), ("terms",), ()):
                key = f"row-{len(path)}"
                await store.delete(self.mail, key, *path, timestamp=LONG_AGO + 2)
                await store.delete(self.mail, key, *path, timestamp=LONG_AGO)
                written = {"terms": {"tea": {1: b"hidden"}}}
                await store.insert(self.mail, key, written, timestamp=LONG_AGO + 1)
                assert await store.get(self.mail, key, "terms", "tea", 1) is None
                assert names(await store.get(self.mail, key, "terms")) == []
            assert [row async for row in store.scan(self.mail)] == []

    async def test_a_page_may_take_many_columns_by_time(self, open_tables: OpenTables) -> None:
        many = 40
        async with open_tables(self.mail) as store:
            for n in range(many):
                await store.insert(self.mail, "ann", {"terms": {"tea": {n: b""}}})
            page = await store.get(self.mail, "ann", "terms", "tea", first=many + 1)
            assert (names(page), page.next) == ([*reversed(range(many))], None)

    async def test_an_older_delete_leaves_a_newer_column_in_its_place(
        self, open_tables: OpenTables
    ) -> None:
        async with open_tables(self.mail) as store:
            for number, time in ((1, 2), (2, 1)):
                written = {"terms": {"tea": {number: b""}}}
                await store.insert(self.mail, "ann", written, timestamp=LONG_AGO + time)
            await store.delete(self.mail, "ann", "terms", "tea", 1, timestamp=LONG_AGO + 1)
            assert names(await store.get(self.mail, "ann", "terms", "tea")) == [1, 2]

    async def test_super_columns_are_paged_with_their_first_columns(
        self, open_tables: OpenTables
    ) -> None:
        async with open_tables(self.mail) as store:
            threads = {n: dict.fromkeys("abc", b"") for n in (-1, 0, 7)}
            await store.insert(self.mail, "ann", {"threads": threads})
            page = await store.get(self.mail, "ann", "threads", first=2, within=2)
            assert [(each.name, names(each.columns)) for each in page] == [
                (-1, ["a", "b"]),
                (0, ["a", "b"]),
            ]
            rest = await store.get(self.mail, "ann", "threads", -1, next=page.columns[0].next)
            assert names(rest) == ["c"]
            page = await store.get(self.mail, "ann", "threads", next=page.next)
            assert (names(page), page.next) == ([7], None)
            page = await store.get(self.mail, "ann", "threads", start=0, reverse=True)
            assert names(page) == [7, 0]

    async def test_names_of_every_type_keep_their_order(self, open_tables: OpenTables) -> None:
        samples: dict[type, list[Any]] = {
            bytes: [b"", b"\0", b"\0\0", b"\0\xff", b"a", b"a\0", b"\xff"],
            str: ["", "\0", "a", "a\0b", "ab", "ä", "\U0001f600"],
            int: [-(1 << 63), -256, -1, 0, 1, 255, (1 << 63) - 1],
            float: [float("-inf"), -1e300, -1.5, 0.0, 1e-300, 2.0, float("inf")],
            UUID: [UUID(int=n) for n in (0, 1, 1 << 64, (1 << 128) - 1)],
        }
        for of, ordered in samples.items():
            name = f"of_{of.__name__.lower()}"
            table = self.table(
                name, keys=of, plain=Family(columns=of), deep=Family(supers=of, columns=of)
            )
            async with open_tables(table) as store:
                columns = dict.fromkeys(reversed(ordered), b"")
                for key in reversed(ordered):
                    if key not in ("", b""):
                        await store.insert(table, key, {"plain": columns, "deep": {key: columns}})
                rows = [row async for row in store.scan(table)]
                assert [row.key for row in rows] == [
                    each for each in ordered if each not in ("", b"")
                ]
                assert names(rows[0].families["plain"]) == ordered
                assert names(await store.get(table, ordered[1], "deep", ordered[1])) == ordered

    async def test_rows_are_scanned_in_the_order_of_their_keys(
        self, open_tables: OpenTables
    ) -> None:
        async with open_tables(self.mail) as store:
            for key in ("b", "a", "c", "ab", "gone"):
                await store.insert(
                    self.mail, key, {"profile": {"x": b""}, "terms": {"t": {1: b""}}}
                )
            await store.delete(self.mail, "gone")
            assert [row.key async for row in store.scan(self.mail)] == ["a", "ab", "b", "c"]
            found = [row.key async for row in store.scan(self.mail, start="ab", end="c")]
            assert found == ["ab", "b"]
            found = [row.key async for row in store.scan(self.mail, reverse=True)]
            assert found == ["c", "b", "ab", "a"]

    async def test_a_scan_shows_what_is_left_of_each_row(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            for key in ("a", "b"):
                await store.insert(
                    self.mail, key, {"profile": {"x": b""}, "terms": {"t": {1: b""}}}
                )
            await store.delete(self.mail, "a", "profile")
            await store.delete(self.mail, "b", "terms", "t")
            shown = {row.key: set(row.families) async for row in store.scan(self.mail)}
            assert shown == {"a": {"terms"}, "b": {"profile"}}

    async def test_a_hashed_table_is_scanned_whole(self, open_tables: OpenTables) -> None:
        table = self.table("spread", kind="hashed", state=Family(columns=str))
        async with open_tables(table) as store:
            for n in range(250):
                await store.insert(table, f"key-{n}", {"state": {"n": b"%d" % n}})
            keys = [row.key async for row in store.scan(table)]
            assert sorted(keys) == sorted(f"key-{n}" for n in range(250))
            with raised(SchemaError, "hashed"):
                _ = [row async for row in store.scan(table, start="a")]

    async def test_values_may_be_what_msgspec_takes(self, open_tables: OpenTables) -> None:
        table = self.table("typed", state=Family(columns=str, values=dict[str, list[int]]))
        async with open_tables(table) as store:
            await store.insert(table, "k", {"state": {"x": {"a": [1, 2]}}})
            assert (await store.get(table, "k", "state", "x")).value == {"a": [1, 2]}
            with raised(SchemaError, "not of"):
                await store.insert(table, "k", {"state": {"x": {"a": "b"}}})

    async def test_what_the_table_lacks_is_named_before_anything_is_sent(
        self, open_tables: OpenTables
    ) -> None:
        other = self.table("other", profile=Family(columns=str))
        async with open_tables(self.mail) as store:
            wrong: list[tuple[str, Callable[[], object]]] = [
                ("no family 'prof'", lambda: store.insert(self.mail, "k", {"prof": {"x": b""}})),
                (
                    "of type str, not int",
                    lambda: store.insert(self.mail, "k", {"profile": {1: b""}}),
                ),
                ("of type int, not str", lambda: store.delete(self.mail, "k", "terms", "tea", "x")),
                (
                    "from the name of each column",
                    lambda: store.insert(self.mail, "k", {"terms": {"a": b""}}),
                ),
                ("bytes, not str", lambda: store.insert(self.mail, "k", {"profile": {"x": "y"}})),
                ("too long", lambda: store.delete(self.mail, "k", "profile", "x", "y")),
                (
                    "not a table of this store",
                    lambda: store.insert(other, "k", {"profile": {"x": b""}}),
                ),
                (
                    "of type str, not bytes",
                    lambda: store.insert(self.mail, b"k", {"profile": {"x": b""}}),
                ),
                ("empty", lambda: store.insert(self.mail, "k", {})),
                (
                    "at most 65535",
                    lambda: store.insert(self.mail, "k" * 65_536, {"profile": {"x": b""}}),
                ),
                (
                    "at most 65535",
                    lambda: store.insert(self.mail, "k", {"profile": {"x" * 65_536: b""}}),
                ),
                (
                    "16777216 at most",
                    lambda: store.insert(self.mail, "k", {"profile": {"x": bytes(16 * 2**20 + 1)}}),
                ),
                (
                    "at most 33554432",
                    lambda: store.insert(
                        self.mail, "k", {"profile": {each: bytes(12 * 2**20) for each in "abc"}}
                    ),
                ),
            ]
            for message, call in wrong:
                with raised(SchemaError, message):
                    call()
            assert [row async for row in store.scan(self.mail)] == []

    async def test_what_no_page_has_is_refused(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            wrong: list[tuple[str, Any]] = [
                ("first", 0),
                ("first", 10_001),
                ("next", "a"),
                ("start", 1),
                ("reverse", "no"),
            ]
            for name, given in wrong:
                with raised(SchemaError, name):
                    await store.get(self.mail, "k", "profile", **{name: given})
            unused: list[tuple[str, Any]] = [("first", 1), ("start", "a"), ("reverse", True)]
            for name, given in unused:
                for path in ((), ("profile", "x")):
                    with raised(SchemaError, f"{name} is for a page"):
                        await store.get(self.mail, "k", *path, **{name: given})
            with raised(SchemaError, "reverse"):
                _ = [row async for row in store.scan(self.mail, reverse="no")]  # type: ignore[arg-type]
            with raised(SchemaError, "microseconds"):
                await store.get(self.mail, "k", "log", start=b"a")

    async def test_a_time_past_the_clock_is_refused(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            version = await store.insert(self.mail, "k", {"profile": {"x": b""}})
            with raised(ConfigurationError, "a minute ahead"):
                await store.insert(
                    self.mail, "k", {"profile": {"x": b""}}, timestamp=version.time + 120_000_000
                )

    async def test_a_repeated_write_counts_once(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            write = store.insert(self.mail, "k", {"log": {b"x": b"1"}})
            version = await write
            await store.insert(self.mail, "k", {"log": {b"x": b"2"}})
            assert await write.repeat() == version
            page = await store.get(self.mail, "k", "log")
            assert [column.value for column in page] == [b"2"]

    async def test_a_cancelled_write_can_be_repeated(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            write = store.insert(self.mail, "k", {"profile": {"x": b"1"}})
            task = asyncio.ensure_future(write)
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            version = await write.repeat()
            column = await store.get(self.mail, "k", "profile", "x")
            assert (column.value, column.version) == (b"1", version)

    async def test_a_row_of_thousands_of_columns_is_paged_whole(
        self, open_tables: OpenTables
    ) -> None:
        async with open_tables(self.mail) as store:
            for start in range(0, 3_000, 500):
                columns = {f"{n:05}": b"%d" % n for n in range(start, start + 500)}
                await store.insert(self.mail, "k", {"profile": columns})
            gone = [store.delete(self.mail, "k", "profile", f"{n:05}") for n in range(0, 3_000, 3)]
            await asyncio.gather(*gone)
            found: list[str] = []
            page = await store.get(self.mail, "k", "profile", first=700)
            found += names(page)
            while page.next is not None:
                page = await store.get(self.mail, "k", "profile", first=700, next=page.next)
                found += names(page)
            assert found == [f"{n:05}" for n in range(3_000) if n % 3]

    async def test_it_is_the_same_after_it_was_opened_again(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail) as store:
            await store.insert(self.mail, "k", {"profile": {"x": b"1"}, "log": {b"a": b""}})
            await store.delete(self.mail, "k", "log", b"a")
        async with open_tables(self.mail) as store:
            row = await store.get(self.mail, "k")
            assert [(each, names(page)) for each, page in row.families.items()] == [
                ("profile", ["x"])
            ]
            await store.warm(self.mail, "k")

    async def test_a_table_cannot_become_another(self, open_tables: OpenTables) -> None:
        async with open_tables(self.mail):
            pass
        others = [
            (self.table("mail", kind="hashed", log=Family(columns=bytes, order="time")), "kind"),
            (self.table("mail", keys=int, log=Family(columns=bytes, order="time")), "keys"),
            (self.table("mail", log=Family(columns=bytes)), "order"),
            (self.table("mail", log=Family(columns=str, order="time")), "columns=bytes"),
            (self.table("mail", profile=Family(supers=str, columns=str)), "supers"),
        ]
        for table, message in others:
            with raised(SchemaError, message):
                async with open_tables(table):
                    pass
        wider = self.table("mail", profile=Family(columns=str), more=Family(columns=int))
        async with open_tables(wider) as store:
            await store.insert(wider, "k", {"more": {1: b""}})

    async def test_the_blocking_form_does_the_same(self, open_tables: OpenTables) -> None:
        def body() -> None:
            with open_tables(self.mail) as store:
                version = store.insert(self.mail, "k", {"profile": {"x": b"1", "y": b"2"}})
                store.delete(self.mail, "k", "profile", "y")
                store.warm(self.mail, "k", "profile")
                assert store.get(self.mail, "k", "profile", "x").version == version
                assert names(store.get(self.mail, "k", "profile")) == ["x"]
                assert [row.key for row in store.scan(self.mail)] == ["k"]
                with raised(SchemaError, "no family"):
                    store.get(self.mail, "k", "no")

        await asyncio.to_thread(body)


class raised:  # noqa: N801 - reads as what it checks
    """The block raises `kind`, with `text` in its message."""

    def __init__(self, kind: type[Exception], text: str) -> None:
        self._kind = kind
        self._text = text

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> bool:
        assert kind is not None, f"nothing was raised; expected {self._text!r}"
        if not issubclass(kind, self._kind):
            return False
        assert self._text in str(error), f"{self._text!r} is not in {str(error)!r}"
        return True
