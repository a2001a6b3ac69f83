"""The shape of everything that decides.

A machine is passive: it is handed the time and an event, and returns what should be done, in order,
and when it must be woken at the latest. It never reads a clock, sends, writes or waits. So one
driver can run it against sockets and another, in the simulator, against a thousand simulated hours;
and a test is a list of events.

- `handle` first does all that is due at `now`, then looks at the event (rule P6): an answer that
  arrives after the lease ran out must not be taken before it is seen to have run out.
- A late or spurious `advance` is legal.
- Actions are carried out in the order given. Between two of them a process may stop for a minute
  or for ever; the order is chosen so that this is safe.
"""

from typing import Generic, NamedTuple, Protocol, TypeVar

from tenure.base.instants import Instant

E_contra = TypeVar("E_contra", contravariant=True)
A_co = TypeVar("A_co", covariant=True)
A = TypeVar("A")


class Output(NamedTuple, Generic[A]):
    """The actions that a machine wants carried out, in order, and when it must be advanced."""

    actions: list[A]
    wake_at: Instant


class Machine(Protocol[E_contra, A]):
    """A state machine: time and an event in, actions and a wake-up out."""

    def handle(self, now: Instant, event: E_contra) -> Output[A]:
        """Do what is due at `now`, then take `event`."""
        ...

    def advance(self, now: Instant) -> Output[A]:
        """Do what is due at `now`."""
        ...

    def invariants(self) -> None:
        """Raise AssertionError if the machine contradicts itself.

        The exhaustive search calls it at every step; a simulated seed every few steps, and where
        something has changed, because it costs more than a step.
        """
        ...
