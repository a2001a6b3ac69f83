"""What happens to the libraries in a child process after `os.fork`.

The child has a copy of everything but the thread that renews, so what it believes would silently
grow old. If it had the thread as well, two processes would renew one lease. So an object that the
parent entered is unusable in the child, and says so. An object that the parent only made works in
the child.
"""

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """An object that must become unusable in a forked child."""

    def on_fork(self) -> None:
        """This is the child: be unusable. No lock of the parent's may be taken."""
        ...


_alive: WeakSet[Forkable] = WeakSet()


def watch_forks(each: Forkable) -> None:
    """Call `each.on_fork` in a forked child."""
    _alive.add(each)


def _in_child() -> None:
    for each in list(_alive):
        each.on_fork()
    _alive.clear()


os.register_at_fork(after_in_child=_in_child)
