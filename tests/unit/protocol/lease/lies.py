"""Any valid message, in any state, at any time; and how a machine is driven through it."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, Instant, seconds
from tenure.base.keys import KEY_BYTES
from tenure.base.machine import Machine
from tenure.protocol.lease.messages import Entry, Mark, Process
from tenure.protocol.lease.timing import TEST

ADVANCES_A_SECOND = 200
"""A beat every 0.1 s, pushes, renewals and searches: some dozens. A busy machine has thousands."""
CUTS: tuple[bytes, ...] = (b"", b"c", b"h", b"k" * 1024, b"m", b"t")
LONGEST_KEY = b"k" * KEY_BYTES
NAMES = ("a", "a", "b", "\U0010ffff" * 200)
ADDRESSES = ("http://a", "http://a", "\x00" * 2000)
MARKS: tuple[Mark, ...] = ("renewed", "granted", "recalled")
BRIEF = settings(max_examples=60)


class Lies:
    """Lies that Hypothesis draws, in the words of the protocol."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def number(self, most: int = 6) -> int:
        return self.data.draw(st.integers(0, most))

    def coin(self) -> bool:
        return self.data.draw(st.booleans())

    def near(self, right: int) -> int:
        """Mostly the right one."""
        return max(right + self.data.draw(st.sampled_from((0, 0, 0, 0, 1, -1))), 0)

    def duration(self) -> int:
        return self.data.draw(
            st.sampled_from((0, 1, MILLISECOND_NS, TEST.renew_ns, TEST.term_ns, FAR_FUTURE))
        )

    def pieces(self) -> list[tuple[bytes, bytes | None]]:
        """Ranges, in order, not overlapping."""
        cuts = self.data.draw(st.lists(st.sampled_from(CUTS), unique=True, max_size=4).map(sorted))
        ends: list[bytes | None] = [*cuts[1:], None]
        return [piece for piece in zip(cuts, ends, strict=bool(cuts)) if self.coin()][: len(cuts)]

    def entries(self) -> tuple[Entry, ...]:
        return tuple(
            Entry(
                start=start,
                end=end,
                owner=self.number(3),
                number=number,
                since=self.data.draw(st.integers(0, number)),
            )
            for start, end in self.pieces()
            for number in [self.number(20)]
        )

    def pause(self) -> int:
        return self.data.draw(
            st.sampled_from((0, 0, MILLISECOND_NS, seconds(0.05), seconds(0.4), seconds(2)))
        )


def drive(
    machine: Machine[Any, Any], now: Instant, until: Instant, wake_at: Instant
) -> list[object]:
    """Wake the machine when it wants to be woken; what it did."""
    done: list[object] = []
    woken = 0
    while (wake_at := max(wake_at, now)) <= until:
        now, woken = wake_at, woken + 1
        output = machine.advance(now)
        machine.invariants()
        done += output.actions
        wake_at = output.wake_at
        most = ADVANCES_A_SECOND * (1 + (until - now) // seconds(1)) + 50
        assert woken <= 5 * most, f"woken {woken} times"
    return done


def process(lies: Lies) -> Process:
    return Process(
        boot_id="host",
        pid_namespace=1,
        time_namespace=lies.number(1),
        pid=lies.number(2),
        start_time=100,
    )
