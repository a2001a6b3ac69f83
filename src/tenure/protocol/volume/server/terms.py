"""How long read leases last, and the allowance for clocks that run at different rates."""

from typing import Literal

import msgspec

from tenure.base.instants import in_seconds, seconds
from tenure.errors import ConfigurationError

Mode = Literal["strong", "best effort"]
Invalidation = Literal["delayed", "at once"]


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The durations of the leases that a server gives. Clients are told these; they are never
    configured.

    Raises ConfigurationError if they do not fit together.
    """

    term_ns: int = seconds(3)
    """The length of a volume lease, the paper's t_v: a write waits this long for a client that is
    gone.
    """
    lease_ns: int = seconds(600)
    """The length of an object lease, the paper's t: an object is kept this long without asking
    about it.
    """
    keep_ns: int = seconds(60)
    """The paper's d: how long invalidations are kept for a reader whose volume lease has ended."""
    mute_ns: int = seconds(60)
    """How long a reader that does not acknowledge is given no volume lease (V20)."""
    mode: Mode = "strong"
    invalidate: Invalidation = "delayed"
    drift: tuple[int, int] = (13, 12)
    """The most by which clocks differ: one clock shows the first while the other shows
    the second.
    """

    def __post_init__(self) -> None:
        for name in ("term_ns", "lease_ns", "mute_ns"):
            if getattr(self, name) <= 0:
                shown = in_seconds(getattr(self, name))
                raise ConfigurationError(f"{name} is {shown:g} s; it must be more than 0")
        if self.keep_ns < 0:
            raise ConfigurationError(f"keep_ns is {in_seconds(self.keep_ns):g} s; 0 is the least")
        fast, slow = self.drift
        if not fast >= slow > 0:
            raise ConfigurationError(f"drift is {fast}/{slow}; it must be at least 1")

    def held_ns(self, told_ns: int) -> int:
        """How long the server counts on a lease of which it told a client `told_ns` (V3)."""
        fast, slow = self.drift
        return -(-told_ns * fast // slow)

    def told_ns(self, left_ns: int) -> int:
        """The longest length that a client may be told if the server has only `left_ns` (V11)."""
        fast, slow = self.drift
        return max(0, left_ns * slow // fast)

    @property
    def known_ns(self) -> int:
        """How long a server remembers a reader that it does not hear (C6)."""
        return self.held_ns(self.term_ns) + self.keep_ns

    @property
    def is_strong(self) -> bool:
        """Whether writes wait for readers that may still read the old value."""
        return self.mode == "strong"
