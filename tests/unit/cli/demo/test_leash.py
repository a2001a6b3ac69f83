"""The leash of a child with an event loop: its orders, the word to stop, and the end of its parent.

It ends its own process, so most tests have one of their own on the other end of a pipe.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from threading import Timer

import pytest

from tenure.cli.demo import leash
from tenure.cli.demo.leash import ORPHANED, Leash
from tenure.cli.demo.reports import STOP
from tenure.testing.clock import come_to_rest
from tests.patience import DEADLINE_SECONDS

TWO_ORDERS = """
import asyncio
from tenure.cli.demo.leash import Leash

async def be_told_twice():
    leash = Leash()
    print((await leash.orders()).decode(), flush=True)
    print((await leash.orders()).decode(), flush=True)
    print(await leash.stopped_within(60))

asyncio.run(be_told_twice())
"""


def told(first: bytes, *others: bytes, is_closed: bool = False) -> tuple[int, str]:
    """The exit code and the words of a child that is written this, each after it has answered."""
    orders, parent = os.pipe()
    with os.fdopen(orders, "rb"), os.fdopen(parent, "wb", buffering=0) as speaking:
        with subprocess.Popen(
            [sys.executable, "-c", TWO_ORDERS], stdin=orders, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout
            guard = Timer(DEADLINE_SECONDS, child.kill)
            guard.start()
            speaking.write(first)
            said = ""
            for each in others:
                said += child.stdout.readline()
                speaking.write(each)
            if is_closed:
                speaking.close()
            said += child.stdout.read()
            guard.cancel()
        return child.returncode, said


@pytest.mark.asyncio
async def test_orders_that_have_come_are_taken_one_by_one_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listening: list[Callable[[bytes], object]] = []
    monkeypatch.setattr(leash, "listen", listening.append)
    it = Leash()
    (say,) = listening
    say(b"first")
    say(b"second")
    await come_to_rest()
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert [await it.orders(), await it.orders()] == [b"first", b"second"]
    assert not it.stopping.is_set()


def test_two_orders_that_come_in_one_piece_are_both_taken() -> None:
    assert told(b"first\nsecond\n" + STOP + b"\n") == (0, "first\nsecond\nTrue\n")


def test_a_word_to_stop_takes_the_place_of_no_order() -> None:
    assert told(b"first\n" + STOP + b"\nsecond\n") == (0, "first\nsecond\nTrue\n")


def test_an_order_may_come_in_two_pieces() -> None:
    assert told(b"first\nsec", b"ond\n" + STOP + b"\n") == (0, "first\nsecond\nTrue\n")


def test_who_is_stopped_before_its_first_order_ends_at_once() -> None:
    assert told(STOP + b"\n") == (ORPHANED, "")


def test_who_waits_for_its_next_order_ends_when_the_parent_is_gone() -> None:
    assert told(b"first\n", b"", is_closed=True) == (ORPHANED, "first\n")
