"""Policies from outside, most of which should not be trusted: `test_policy_process` runs them."""

import os
from pathlib import Path
from threading import Event

from tenure.policies import HeldBack, Plan, RangeMap, Situation, Weighted, Why, nothing_to_plan

TROUBLE = "TMPDIR"
"""A variable that policies get: in a test, the directory with the file that has `Fickle` raise."""


class ToFirst:
    """All ranges to the owner with the lowest incarnation. It counts its rounds in its memory."""

    follows_load = False

    def __call__(self, situation: Situation) -> Plan:
        print("what is printed is no answer")
        if not situation.candidates:
            return nothing_to_plan()
        rounds = situation.memory if isinstance(situation.memory, int) else 0
        first = min(each.incarnation for each in situation.candidates)
        held_back = [HeldBack("everything else", f"round {rounds}")]
        why = Why("first", "it was there first")
        return Plan(RangeMap(first), RangeMap(why), held_back, memory=rounds + 1)


class Ours(Weighted):
    """One of ours, run from outside."""


class Fickle(ToFirst):
    """Raises as long as a file is there."""

    def __call__(self, situation: Situation) -> Plan:
        if (Path(os.environ[TROUBLE]) / "trouble").exists():
            raise RuntimeError("today is not my day")
        return super().__call__(situation)


class Raises(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        raise KeyError(f"no plan for {len(situation.candidates)}")


class Sleeps(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        Event().wait()
        raise AssertionError(situation)


class Forks(ToFirst):
    """Leaves a process that waits for ever, and says its number by the name of a file."""

    def __call__(self, situation: Situation) -> Plan:
        if not (number := os.fork()):
            Event().wait()
        (Path(os.environ[TROUBLE]) / str(number)).touch()
        Event().wait()
        raise AssertionError(situation)


class Spins(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        while situation:
            pass
        raise AssertionError(situation)


class EatsMemory(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        eaten = [bytes(situation.now + (1 << 20))]
        while True:
            eaten.append(bytes(16 << 20))


class Exits(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        os._exit(7)


class Writes(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        (Path(os.environ[TROUBLE]) / "written").write_text("x" * 100)
        return super().__call__(situation)


class Overlaps(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        plan = super().__call__(situation)
        plan.owners._starts = [b"", b"b", b"a"]
        plan.owners._values = [1, 2, 1]
        return plan


class LeavesGaps(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        plan = super().__call__(situation)
        plan.owners._starts = [b"b"]
        return plan


class Strange(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        return super().__call__(situation)._replace(owners=RangeMap(99))


class ToNobody(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        return super().__call__(situation)._replace(owners=RangeMap(0))


class Crumbles(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        plan = super().__call__(situation)
        plan.owners._starts, plan.owners._values = [b""] * 200_000, [1] * 200_000
        return plan


class NoPlan(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        return None  # type: ignore[return-value]


class Words(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        return super().__call__(situation)._replace(owners=RangeMap("ann"))  # type: ignore[arg-type]


class Impatient(ToFirst):
    def __call__(self, situation: Situation) -> Plan:
        return super().__call__(situation)._replace(again_at=situation.now)


class NotCallable:
    """No policy."""


class NeedsArguments(ToFirst):
    def __init__(self, tuning: object) -> None:
        self.tuning = tuning
