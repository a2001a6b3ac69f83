"""Waiting until an owner has nothing left, and showing how many ranges it still has."""

import sys
import time
from typing import NamedTuple

from tenure.cli.asking import AskingOptions, ask, path
from tenure.cli.output import complain, counted, say
from tenure.cli.waiting import WaitingLine
from tenure.protocol.lease.answers import Owners

PAUSE_SECONDS = 0.1
"""The pause between two questions: far shorter than a range takes to move."""


class StillHeld(NamedTuple):
    """How many ranges an owner still has, and whether another owner can take them."""

    ranges: int
    has_taker: bool


def wait_until_drained(how: AskingOptions, pool: str, owner: str) -> None:
    """Return when the owner has nothing left, or is gone. An interruption leaves the drain on."""
    began = time.monotonic()
    left = _left(how, pool, owner)

    def text() -> str:
        why = "" if left.has_taker else "; no other owner can take them: start another owner"
        return f"{owner} still has {counted(left.ranges, 'range')} of {pool}{why}"

    try:
        with WaitingLine(text):
            while left.ranges:
                time.sleep(PAUSE_SECONDS)
                left = _left(how, pool, owner)
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            complain(f"{owner} stays drained; to take that back: tenure uncordon {pool} {owner}")
        raise
    if not how.json:
        say(f"{owner} has nothing left, after {time.monotonic() - began:.1f} s")


def _left(how: AskingOptions, pool: str, owner: str) -> StillHeld:
    owners = ask(how.manager, path(pool, "owners")).read(Owners).owners
    ranges = sum(each.ranges for each in owners if each.name == owner)
    return StillHeld(ranges, any(each.name != owner and not each.steering for each in owners))
