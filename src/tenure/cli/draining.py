"""Waiting until an owner has nothing left: how many ranges it still has, as the manager says it."""

import sys
import time

from tenure.cli.asking import Manager, ask, path
from tenure.cli.output import say
from tenure.manager.answers import OwnersAnswer

SILENT_SECONDS = 1.0
"""What is over sooner needs no telling."""
PAUSE_SECONDS = 0.1
"""Between two questions: far less than a range takes to move."""
LINE_SECONDS = 5.0


def wait_until_drained(manager: Manager, pool: str, owner: str, *, quiet: bool) -> None:
    """Return when the owner has nothing left, or is gone. Interrupting it leaves the drain on."""
    began = time.monotonic()
    next_line, told = began + SILENT_SECONDS, -1
    on_terminal = sys.stderr.isatty()
    while True:
        left, others = _left(manager, pool, owner)
        if left == 0:
            break
        now = time.monotonic()
        if now >= next_line and (on_terminal or left != told):
            next_line, told = now + (0.0 if on_terminal else LINE_SECONDS), left
            why = "" if others else "; nobody else can be given them: start another owner"
            text = f"{owner} still has {left} ranges of {pool}{why}"
            end = "\x1b[K\r" if on_terminal else "\n"
            print(text, file=sys.stderr, end=end, flush=True)
        time.sleep(PAUSE_SECONDS)
    if on_terminal and told >= 0:
        print("\x1b[K", file=sys.stderr, end="", flush=True)
    if not quiet:
        say(f"{owner} has nothing left, after {time.monotonic() - began:.1f} s")


def _left(manager: Manager, pool: str, owner: str) -> tuple[int, bool]:
    """How many ranges it has, and whether there is anybody to take them."""
    owners = ask(manager, path(pool, "owners")).read(OwnersAnswer).owners
    left = sum(each.ranges for each in owners if each.name == owner)
    return left, any(each.name != owner and not each.steering for each in owners)
