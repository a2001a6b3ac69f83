"""Checking: what a checker raises when a promise is broken, and the machines' own invariants."""

from tenure.sim.kernel.process import SimProcess

INVARIANTS_EVERY = 16
"""How many steps are between two checks: the machines' own invariants cost more than the steps."""


class Violation(Exception):
    """A promise was broken."""

    def __init__(self, promise: str, detail: str) -> None:
        super().__init__(f"{promise}: {detail}")
        self.promise = promise
        self.detail = detail


class InvariantChecker:
    """Makes machines assert their invariants every few steps."""

    def __init__(self) -> None:
        self._steps = 0

    def on_step(self, process: SimProcess) -> None:
        """A machine has handled an event."""
        self._steps += 1
        if self._steps % INVARIANTS_EVERY == 0 and self.has_changed(process):
            process.machine.invariants()

    def has_changed(self, process: SimProcess) -> bool:
        """Whether a process has anything new to check."""
        return True
