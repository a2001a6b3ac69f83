"""A chat room over three nodes, with two owners: all of them are processes, and any of them ends.

`examples/fenced_room.py` is an owner. Rounds of three steps go on for half a minute, each in an
order that is drawn: the owner is killed; the owner is stopped past its term and woken when its
successor has spoken; a node is killed, and the one that was killed before comes again. Whatever is
done is done while a word is being said. No word that was kept may be lost, and no word may come to
be seen that was not there when a successor had spoken.

`TENURE_TEST_SEED` draws the same orders again.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random, SystemRandom
from time import monotonic

import pytest

from examples.fenced_room import ROOMS
from lab.demo.ring.home_ring import HomeRing, until
from tenure import open_store
from tenure.columns.results import Page
from tenure.columns.store import ColumnStore
from tests.patience import DEADLINE_SECONDS
from tests.repo.reading import ROOT

pytestmark = pytest.mark.asyncio
SECONDS = 30.0
"""The time in which rounds begin."""
STEPS = ("kill_the_owner", "stop_the_owner", "kill_a_node")
ROOM = "attic"


class Talker:
    """A process that may own the room."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, home: HomeRing) -> "Talker":
        command = [sys.executable, str(ROOT / "examples" / "fenced_room.py"), home.url, ROOM]
        environment = {**os.environ, "TENURE_MANAGERS": home.manager}
        talker = cls(
            await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, env=environment, start_new_session=True
            )
        )
        assert await talker.line() == "ready"
        return talker

    async def line(self) -> str:
        """The next line; empty where the process has ended."""
        assert self.process.stdout
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                return (await self.process.stdout.readline()).decode().strip()
        except TimeoutError:
            silent = f"process {self.process.pid} has said nothing for {DEADLINE_SECONDS:g} s"
            raise AssertionError(f"{silent}: what became of its word?") from None

    async def begin(self, word: str) -> str:
        """Have it say a word: `saying`, if it owns the room."""
        assert self.process.stdin
        self.process.stdin.write(f"{word}\n".encode())
        return await self.line()


class Chat:
    """The room, and what was said in it."""

    def __init__(self, home: HomeRing, store: ColumnStore, dice: Random) -> None:
        self._home = home
        self._store = store
        self._dice = dice
        self._words = 0
        self.talkers: list[Talker] = []
        """The talkers that may be asked: neither killed nor stopped."""
        self._everybody: list[Talker] = []
        self._down = ""
        self._kept: dict[int, str] = {}
        self._open: set[str] = set()
        """Words of which nobody has said yet what became of them."""
        self.counts: Counter[str] = Counter()

    # --- who is there ---

    async def join(self) -> None:
        """One more may own the room."""
        talker = await Talker.start(self._home)
        self.talkers.append(talker)
        self._everybody.append(talker)

    async def leave(self) -> None:
        """All processes end, also one that is stopped."""
        for talker in self._everybody:
            if talker.process.returncode is None:
                talker.process.kill()
            await talker.process.wait()

    # --- talking ---

    async def begin(self) -> tuple[Talker, str]:
        """Begin to say a word at the owner; return the talker and the word."""
        told = "nobody was asked"
        deadline = monotonic() + DEADLINE_SECONDS
        while monotonic() < deadline:
            for talker in self.talkers:
                self._words += 1
                word = f"word-{self._words}"
                told = await talker.begin(word)
                if told.startswith("saying"):
                    self._open.add(word)
                    return talker, word
                assert told.startswith(("not mine", "refused", "failed")), told
            await asyncio.sleep(0.05)
        raise AssertionError(told)

    async def end(self, talker: Talker) -> str:
        """Return what became of the word; empty if the talker has ended."""
        told = await talker.line()
        what, _, said = told.partition(" ")
        what = what.rstrip(":")
        assert what in ("", "kept", "refused", "failed"), told
        if what == "kept":
            number, word = said.split(": ")
            assert self._kept.setdefault(int(number), word) == word
            self._open.discard(word)
        self.counts[what or "died"] += 1
        return what

    async def say(self) -> None:
        """Say words until one is kept: then the room's owner has adopted it."""
        deadline, before = monotonic() + DEADLINE_SECONDS, self.counts.copy()
        while monotonic() < deadline:
            talker, _ = await self.begin()
            if await self.end(talker) == "kept":
                return
        raise AssertionError(f"no word was kept in {DEADLINE_SECONDS:g} s: {self.counts - before}")

    async def check(self) -> None:
        """Check the words: a successor has spoken, so those that are there now are all that there
        will ever be (D6).
        """
        found = await until(self._read, bool, "the room cannot be read")
        seen = {each.name: each.value for each in found}
        assert self._kept.items() <= seen.items(), "a word that was kept is lost"
        assert {*seen.values()} - {*self._kept.values()} <= self._open, "a late word is seen"
        self._kept = seen
        self._open.clear()

    async def _read(self) -> Page:
        page: Page = await self._store.get(ROOMS, ROOM, "said", first=10_000)
        return page

    # --- what happens ---

    async def kill_the_owner(self) -> None:
        owner, _ = await self.begin()
        await asyncio.sleep(self._dice.random())  # the word may be on its way to the nodes
        owner.process.kill()
        while await self.end(owner):
            pass
        self.talkers.remove(owner)
        await self.say()
        await self.check()
        await self.join()

    async def stop_the_owner(self) -> None:
        owner, _ = await self.begin()
        owner.process.send_signal(signal.SIGSTOP)
        self.talkers.remove(owner)
        await self.say()
        await self.check()
        owner.process.send_signal(signal.SIGCONT)
        what = await self.end(owner)
        if what == "refused":
            self.counts["woken and refused"] += 1
        self.talkers.append(owner)
        await self.say()
        await self.check()

    async def kill_a_node(self) -> None:
        owner, _ = await self.begin()
        if self._down:
            await self._home.launch(self._down)
            await until(self._home.down, lambda down: not down, "a node is left out still")
        self._down = self._dice.choice(["node-1", "node-2", "node-3"])
        self._home.kill(self._down)
        await self.end(owner)
        await self.say()
        await self.check()


@asynccontextmanager
async def chatting(place: Path, dice: Random) -> AsyncIterator[Chat]:
    home = HomeRing(place, 3, 0, managing=("--first-start", "--preset", "test"))
    chat: Chat | None = None
    try:
        await home.start()
        async with open_store(home.url, ROOMS) as store:
            chat = Chat(home, store, dice)
            for _ in range(2):
                await chat.join()
            yield chat
    finally:
        if chat is not None:
            await chat.leave()
        await home.end()


async def test_a_room_loses_no_word_whatever_ends(tmp_path: Path) -> None:
    seed = int(os.environ.get("TENURE_TEST_SEED") or SystemRandom().getrandbits(31))
    print(f"TENURE_TEST_SEED={seed}")
    dice = Random(seed)
    async with chatting(tmp_path, dice) as chat:
        ends_at = monotonic() + SECONDS
        while monotonic() < ends_at:
            for step in dice.sample(STEPS, len(STEPS)):
                print(step, dict(chat.counts))
                await getattr(chat, step)()
    print(dict(chat.counts))
    assert chat.counts["died"] > 0
    assert chat.counts["woken and refused"] > 0
