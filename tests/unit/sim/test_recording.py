"""What is recorded of simulated clients: an operation ends once, or is given up as unknown."""

import pytest

from lab.worlds.columns.recording import Recording
from lab.worlds.columns.registers import RegisterName
from tenure.sim.kernel.checkers import Violation

COLUMN: RegisterName = ("supers", b"x", b"a")


class Recorded:
    def __init__(self) -> None:
        self.now = 0
        self.recording = Recording(lambda: self.now, longest_ns=100)

    def write(self, value: bytes, began: int, ended: int) -> None:
        self.now = began
        number = self.recording.write("c1", b"k", {COLUMN: value}, "quorum")
        self.now = ended
        self.recording.written(number, "written")

    def read(self, value: bytes | None, began: int, ended: int) -> None:
        self.now = began
        number = self.recording.read("c2", b"k", "quorum")
        self.now = ended
        self.recording.found(number, {COLUMN: value})


def test_a_lost_write_is_a_violation_with_its_operations() -> None:
    at = Recorded()
    at.write(b"1", 1, 2)
    at.write(b"2", 3, 4)
    at.read(b"1", 5, 6)
    at.now = 7
    with pytest.raises(Violation, match="c2 read supers/x/a=1 k"):
        at.recording.judge()


def test_a_write_of_a_client_that_is_gone_may_take_effect_at_any_time() -> None:
    at = Recorded()
    at.recording.write("c1", b"k", {COLUMN: b"1"}, "quorum")
    at.write(b"2", 3, 4)
    at.now = 200
    at.recording.judge()
    at.read(b"1", 300, 301)
    at.now = 302
    at.recording.judge()
    at.read(b"2", 400, 401)
    at.now = 402
    with pytest.raises(Violation):
        at.recording.judge()


def test_a_read_that_failed_says_nothing() -> None:
    at = Recorded()
    number = at.recording.read("c2", b"k", "quorum")
    at.recording.found(number, None)
    at.write(b"1", 3, 4)
    at.now = 5
    at.recording.judge()


def test_a_member_of_a_set_that_was_added_is_on_its_page() -> None:
    at = Recorded()
    for member in (b"m1", b"m2", b"m3"):
        number = at.recording.write("c1", b"s", {("set", None, member): member}, "quorum")
        at.now += 1
        at.recording.written(number, "written")
        at.now += 1
    shown: dict[RegisterName, bytes | None] = {("set", None, b"m1"): b"m1"}
    at.recording.shown(at.recording.page("c2", b"s", "set", None), shown, b"m1")
    at.now += 1
    at.recording.judge()
    at.recording.shown(at.recording.page("c2", b"s", "set", b"m2"), {}, None)
    at.now += 1
    with pytest.raises(Violation, match="s set/m3: nothing explains None"):
        at.recording.judge()


def test_what_an_owner_wrote_may_vanish_if_it_is_unknown() -> None:
    at = Recorded()
    number = at.recording.write("c1", b"o", {COLUMN: b"1"}, "quorum", is_owners=True)
    at.now += 1
    at.recording.written(number, "unknown")
    for value in (b"1", None):
        at.now += 1
        read = at.recording.read("c2", b"o", "quorum", is_owners=True)
        at.now += 1
        at.recording.found(read, {COLUMN: value})
    at.now += 1
    at.recording.judge()
