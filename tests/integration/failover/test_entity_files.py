"""Exports and imports through processes: owners are killed in the middle, and so is the command."""

import asyncio
import hashlib
import json
import os
import sqlite3
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.failover.asked_worker import Worker
from tests.integration.processes import manager
from tests.patience import DEADLINE_SECONDS, until
from tests.repo.reading import ROOT

pytestmark = pytest.mark.asyncio
LARGE, MANY = "large", 2_000
KEYS = [f"key-{i}" for i in range(300)]


def write_ledgers(file: Path) -> None:
    """A file as an application writes it that has its state elsewhere: one entity is so large that
    it takes several commits, and the others have one each.
    """
    lines: list[dict[str, Any]] = [
        {"line": "export", "layout": 1, "pool": "ledgers", "kind": "NumberLedger"}
    ]
    for key in (*KEYS[:150], LARGE, *KEYS[150:]):
        numbers = list(range(1, MANY + 1 if key == LARGE else 4))
        lines += [
            {"line": "entity", "key": key, "state": {"found": numbers}},
            {"line": "alarm", "name": "look", "due": 4e9},
            {"line": "collection", "name": "order", "last": len(numbers)},
            *({"line": "item", "at": each, "added": 1.0, "value": each} for each in numbers),
            {"line": "collection", "name": "places"},
            *({"line": "item", "at": each, "value": each} for each in numbers),
        ]
    data = "".join(json.dumps(each) + "\n" for each in lines).encode()
    end = {
        "line": "end",
        "entities": len(KEYS) + 1,
        "lines": len(lines),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    file.write_bytes(data + json.dumps(end).encode() + b"\n")


class Ledgers:
    """A manager, processes that own the ledgers, and commands."""

    def __init__(self, url: str, place: Path) -> None:
        self.url = url
        self._place = place
        self.workers: list[Worker] = []
        self.commands: list[asyncio.subprocess.Process] = []

    async def join(self) -> None:
        program = "tests.integration.failover.entity_worker", f"sqlite:{self._place / 'store'}"
        self.workers.append(await Worker.start(*program, TENURE_MANAGERS=self.url))

    async def kill(self) -> None:
        """Kill an owner, and have another come."""
        worker = self.workers.pop(0)
        worker.process.kill()
        await worker.end()
        await self.join()

    async def begin(self, *arguments: str) -> asyncio.subprocess.Process:
        self.commands.append(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tenure", "entities", *arguments),
                stdout=PIPE,
                stderr=PIPE,
                cwd=ROOT,
                env={**os.environ, "TENURE_MANAGERS": self.url},
            )
        )
        return self.commands[-1]

    async def run(self, *arguments: str) -> str:
        """Run a command to its end; what it said."""
        process = await self.begin(*arguments)
        async with asyncio.timeout(DEADLINE_SECONDS):
            out, error = await process.communicate()
        assert process.returncode == 0, error.decode()
        return (out + error).decode()

    async def all_of(self, key: str) -> list[int]:
        """The numbers of a ledger, whoever has it."""

        async def found() -> str:
            told = await self.workers[0].ask(key)
            return told if told.startswith("has ") else ""

        told = ""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not told:
                told = await found()
        listed = told.removeprefix(f"has {key}").strip()
        return [int(each) for each in listed.split(",") if each]

    def kept(self) -> int:
        """How many rows the store has."""
        with sqlite3.connect(f"file:{self._place / 'store'}?mode=ro", uri=True) as store:
            return int(store.execute("SELECT count(*) FROM tenure_entity").fetchone()[0])


@asynccontextmanager
async def ledgers(place: Path) -> AsyncIterator[Ledgers]:
    with manager("--first-start") as process:
        url = str((await asyncio.to_thread(process.wait_for, "listening"))["url"])
        it = Ledgers(url, place)
        try:
            await it.join()
            await it.join()
            yield it
        finally:
            for command in it.commands:
                if command.returncode is None:
                    command.kill()
                    await command.wait()
            for each in it.workers:
                await each.end()


@pytest.mark.parametrize("ends", ["an owner", "the command"])
async def test_whatever_ends_in_the_middle_of_an_import_nothing_is_lost_or_twice(
    tmp_path: Path, ends: str
) -> None:
    file, out = tmp_path / "ledgers.jsonl", tmp_path / "out.jsonl"
    write_ledgers(file)
    async with ledgers(tmp_path) as it:
        process = await it.begin("import", "ledgers", str(file))
        await until(lambda: it.kept() > 20)
        if ends == "an owner":
            await it.kill()
            _, error = await process.communicate()
            assert process.returncode == 0, error.decode()
        else:
            process.kill()
            await process.wait()
            await it.workers[0].ask(f"{KEYS[0]} 4")  # goes on while the import does not
        said = await it.run("import", "ledgers", str(file), "--replace")
        assert f"of {len(KEYS) + 1} entities imported" in said
        for key in (LARGE, KEYS[0], KEYS[1], KEYS[-1]):
            most = MANY if key == LARGE else 3
            assert await it.all_of(key) == list(range(1, most + 1)), key
        await it.run("export", "ledgers", str(out))
        again = await it.run("import", "ledgers", str(out))
        assert f"0 of {len(KEYS) + 1} entities imported" in again


async def test_an_owner_that_dies_in_the_middle_of_an_export_leaves_nobody_out(
    tmp_path: Path,
) -> None:
    file, out = tmp_path / "ledgers.jsonl", tmp_path / "out.jsonl"
    write_ledgers(file)
    async with ledgers(tmp_path) as it:
        await it.run("import", "ledgers", str(file))
        process = await it.begin("export", "ledgers")
        assert process.stdout is not None
        begun = [await process.stdout.readline() for _ in range(20)]
        await it.kill()
        rest, error = await process.communicate()
        assert process.returncode == 0, error.decode()
        out.write_bytes(b"".join(begun) + rest)
        said = await it.run("import", "ledgers", str(out))
        assert f"0 of {len(KEYS) + 1} entities imported, {len(KEYS) + 1} were there" in said
