"""What every engine of a store must do, as tests.

Subclass `EngineContract` and give it a fixture `place`:

    class TestMyEngine(EngineContract):
        @pytest.fixture
        def place(self): ...

`place.open()` opens the engine of that place, and opens it again after it was closed.
`place.crash(engine)` returns an engine with what is left after the process, or machine, died.
"""

from collections.abc import Iterable
from threading import Thread
from typing import Protocol

from tenure.columns.engines.contract import StorageEngine

SPACE = "a.b"
OTHER = "a.c"


class EnginePlace(Protocol):
    """The place in which an engine keeps its entries."""

    def open(self) -> StorageEngine:
        """An engine of this place; no other is open."""
        ...

    def crash(self, engine: StorageEngine) -> StorageEngine:
        """Another engine, with what is left after `engine` stopped at once."""
        ...


def opened(place: EnginePlace) -> StorageEngine:
    """An engine with the two spaces of these tests."""
    engine = place.open()
    engine.make_spaces([SPACE, OTHER])
    return engine


def keys(entries: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
    """The keys alone."""
    return [key for key, _ in entries]


class EngineContract:
    """Tests that an engine must pass; see the module's docstring."""

    def test_what_is_applied_is_seen_at_once(self, place: EnginePlace) -> None:
        engine = opened(place)
        engine.apply([(SPACE, b"k", b"1"), (SPACE, b"l", b"2"), (OTHER, b"k", b"3")])
        assert engine.get(SPACE, [b"l", b"k", b"no"]) == [b"2", b"1", None]
        assert engine.get(OTHER, [b"k", b"l"]) == [b"3", None]
        engine.apply([(SPACE, b"k", None), (SPACE, b"no", None), (SPACE, b"l", b"")])
        assert engine.get(SPACE, [b"k", b"l"]) == [None, b""]
        engine.close()

    def test_the_last_of_a_batch_counts(self, place: EnginePlace) -> None:
        engine = opened(place)
        engine.apply([(SPACE, b"k", b"1"), (SPACE, b"k", None), (SPACE, b"k", b"2")])
        assert engine.get(SPACE, [b"k"]) == [b"2"]
        engine.close()

    def test_entries_are_walked_in_the_order_of_bytes(self, place: EnginePlace) -> None:
        engine = opened(place)
        engine.apply([(SPACE, key, b"") for key in (b"b", b"", b"a\xff", b"a", b"a\0", b"\xff")])
        cursor = engine.cursor(SPACE)
        every = [b"", b"a", b"a\0", b"a\xff", b"b", b"\xff"]
        assert keys(cursor.walk(b"", None)) == every
        assert keys(cursor.walk(b"", None, reverse=True)) == every[::-1]
        assert keys(cursor.walk(b"a", b"b")) == [b"a", b"a\0", b"a\xff"]
        assert keys(cursor.walk(b"a", b"b", reverse=True)) == [b"a\xff", b"a\0", b"a"]
        assert keys(cursor.walk(b"a\1", b"aa")) == []
        assert keys(cursor.walk(b"a\1", b"aa", reverse=True)) == []
        assert keys(cursor.walk(b"b", b"a")) == []
        assert keys(cursor.walk(b"c", b"d", reverse=True)) == []
        engine.close()

    def test_a_cursor_may_walk_again_and_look_up(self, place: EnginePlace) -> None:
        engine = opened(place)
        engine.apply([(SPACE, bytes([n]), bytes([n])) for n in range(10)])
        cursor = engine.cursor(SPACE)
        assert next(iter(cursor.walk(b"\3", None))) == (b"\3", b"\3")
        assert cursor.get(b"\7") == b"\7"
        assert cursor.get(b"\7\0") is None
        assert cursor.get(b"\x0a") is None
        assert next(iter(cursor.walk(b"", b"\5", reverse=True))) == (b"\4", b"\4")
        engine.close()

    def test_a_cursor_sees_the_instant_at_which_it_was_opened(self, place: EnginePlace) -> None:
        engine = opened(place)
        engine.apply([(SPACE, b"a", b"1"), (SPACE, b"b", b"1")])
        cursor, walk = engine.cursor(SPACE), engine.cursor(SPACE).walk(b"", None)
        assert next(iter(walk)) == (b"a", b"1")
        engine.apply([(SPACE, b"a", b"2"), (SPACE, b"b", None), (SPACE, b"c", b"2")])
        engine.flush()
        engine.compact()
        assert list(walk) == [(b"b", b"1")]
        assert list(cursor.walk(b"", None)) == [(b"a", b"1"), (b"b", b"1")]
        assert cursor.get(b"b") == b"1"
        assert cursor.get(b"c") is None
        assert list(engine.cursor(SPACE).walk(b"", None)) == [(b"a", b"2"), (b"c", b"2")]
        engine.close()

    def test_what_was_synced_survives_a_crash(self, place: EnginePlace) -> None:
        engine = opened(place)
        engine.apply([(SPACE, b"a", b"1"), (SPACE, b"b", b"1")])
        engine.sync()
        engine = place.crash(engine)
        assert list(engine.cursor(SPACE).walk(b"", None)) == [(b"a", b"1"), (b"b", b"1")]
        engine.close()

    def test_a_batch_survives_a_crash_whole_or_not_at_all(self, place: EnginePlace) -> None:
        engine = opened(place)
        engine.sync()
        for n in range(50):
            engine.apply(
                [(each, b"%d-%d" % (n, m), b"") for m in range(20) for each in (SPACE, OTHER)]
            )
        engine = place.crash(engine)
        engine.make_spaces([SPACE, OTHER])
        for n in range(50):
            found = [
                engine.get(each, [b"%d-%d" % (n, m)])[0]
                for m in range(20)
                for each in (SPACE, OTHER)
            ]
            assert found in ([b""] * 40, [None] * 40)
        engine.close()

    def test_what_was_synced_is_there_when_it_is_opened_again(self, place: EnginePlace) -> None:
        engine = opened(place)
        engine.apply([(OTHER, b"k", b"v")])
        engine.sync()
        engine.close()
        engine = place.open()
        assert engine.spaces() >= {SPACE, OTHER}
        assert engine.get(OTHER, [b"k"]) == [b"v"]
        engine.make_spaces([OTHER, "a.new"])
        assert engine.get("a.new", [b"k"]) == [None]
        engine.close()

    def test_a_space_that_was_dropped_is_gone_with_what_it_had(self, place: EnginePlace) -> None:
        """And the others are as they were, also when it is opened again."""
        engine = opened(place)
        engine.apply([(SPACE, b"k", b"kept"), (OTHER, b"k", b"gone")])
        engine.drop_spaces([OTHER])
        assert OTHER not in engine.spaces()
        engine.sync()
        engine.close()
        engine = place.open()
        assert OTHER not in engine.spaces()
        assert engine.get(SPACE, [b"k"]) == [b"kept"]
        engine.make_spaces([OTHER])
        assert engine.get(OTHER, [b"k"]) == [None]
        engine.close()

    def test_batches_are_applied_while_a_sync_runs(self, place: EnginePlace) -> None:
        engine = opened(place)

        def sync_often() -> None:
            for _ in range(20):
                engine.sync()

        thread = Thread(target=sync_often)
        thread.start()
        batches = 200
        for n in range(batches):
            engine.apply([(SPACE, b"%d" % n, b"")])
        thread.join()
        engine.sync()
        engine = place.crash(engine)
        assert len(list(engine.cursor(SPACE).walk(b"", None))) == batches
        engine.close()

    def test_its_figures_tell_of_every_space(self, place: EnginePlace) -> None:
        engine = opened(place)
        entries = 100
        engine.apply([(SPACE, b"%d" % n, b"x" * 1_000) for n in range(entries)])
        engine.flush()
        figures = engine.figures()
        assert figures[SPACE]["entries"] == entries
        assert figures[OTHER]["entries"] == 0
        engine.close()
