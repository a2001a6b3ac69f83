"""The parts of a running demo that a display shows."""

from typing import Literal, NamedTuple, Protocol, TypeAlias

from tenure.cli.demo.reports import FrontendReport

OwnerState: TypeAlias = Literal["starting", "serving", "killed", "stopped", "draining"]


class OwnerRow(NamedTuple):
    """An owner, as far as the demo knows; what it does is what it last reported."""

    number: int
    state: OwnerState
    state_seconds: float
    """How long the owner has been in this state."""
    share: float
    """The owner's part of the key space, from 0 to 1, by the lease table: no other owner may serve
    it."""
    ranges: int
    users: int
    served_per_second: float
    refused: int


class DemoState(NamedTuple):
    """All that is shown, at one moment."""

    elapsed: float
    seconds: float
    phase: str
    manager: str
    term: float
    hold: float
    owners: tuple[OwnerRow, ...]
    strip: tuple[int | None, ...]
    """The key space in slices of equal size: the number of the owner of each."""
    clients: int
    requests_per_second: float
    totals: FrontendReport
    served: int
    double_owner: int


class Display(Protocol):
    """A way to show it."""

    def event(self, at: float | None, text: str) -> None:
        """Something happened, so many seconds after the beginning."""
        ...

    def show(self, picture: DemoState) -> None:
        """How it is now. Called several times a second."""
        ...

    def close(self) -> None:
        """End the display."""
        ...
