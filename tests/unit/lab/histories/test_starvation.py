"""What processes waited for a processor is told apart from what a handle waited for nodes."""

from pathlib import Path

from lab.histories.outages import Stretch, outages
from lab.histories.starvation import Starvation
from tenure.base.instants import SECOND_NS

S = SECOND_NS


class Counts:
    """Stands for the files of a system, which count how long each process has waited so far."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self.waited: dict[int, int] = {}
        self.seen = Starvation(lambda: self.waited, proc)

    def look(self, now: int, **waited: int) -> None:
        """At this time the processes have waited for so long; another one has ended."""
        self.waited = {int(name.removeprefix("p")): each for name, each in waited.items()}
        for pid, each in self.waited.items():
            (self._proc / str(pid)).mkdir(exist_ok=True)
            (self._proc / f"{pid}/schedstat").write_text(f"123 {each} 45\n")
        self.waited[99] = 0
        self.seen.look(now)


def test_a_request_waits_for_one_process_at_a_time(tmp_path: Path) -> None:
    counts = Counts(tmp_path)
    counts.look(0 * S, p1=7, p2=100, p3=0)
    counts.look(1 * S, p1=8, p2=103, p3=0)
    counts.look(2 * S, p1=8, p2=105, p3=4)
    assert counts.seen.between(0 * S, 1 * S) == 3
    assert counts.seen.between(0 * S, 2 * S) == 3 + 4
    assert counts.seen.between(1 * S + 1, 2 * S - 1) == 4, "the looks around it count"


def test_what_a_process_waited_before_it_was_looked_at_does_not_count(tmp_path: Path) -> None:
    counts = Counts(tmp_path)
    counts.look(0 * S, p1=70)
    counts.look(1 * S, p2=5)
    counts.look(2 * S, p2=6)
    assert counts.seen.between(0, 2 * S) == 1


def test_an_outage_that_a_busy_machine_explains_is_not_too_long(tmp_path: Path) -> None:
    counts = Counts(tmp_path)
    counts.look(0 * S, p1=0)
    counts.look(9 * S, p1=2 * S)
    short, long = Stretch("short", 1 * S, 5 * S), Stretch("long", 1 * S, 6 * S)
    found = outages([short, long], (), counts.seen.between)
    assert [(each.stretch, each.is_too_long) for each in found] == [(long, True), (short, False)]


def test_this_system_counts_it() -> None:
    seen = Starvation(tuple)
    assert seen.can_be_seen
    assert seen.between(0, S) == 0, "nobody has looked"
