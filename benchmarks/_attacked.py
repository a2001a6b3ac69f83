"""What is attacked: a manager with tokens, a queue, a store, and processes of pools.

Each is a process of its own, started as a user starts it, and says what it has cost: memory at its
highest, and disk.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count
from pathlib import Path

import aiohttp
import msgspec

from benchmarks import _attacked_services
from benchmarks._attacked_services import AttackedServices
from benchmarks._attacks.members import Fares, Places
from benchmarks._attacks.other_owners import LIARS, POOL
from benchmarks._attacks.store_clients import LARGE_BYTES, LARGE_COLUMNS, LARGE_ROWS, large_key
from benchmarks._attacks.viewers import QUEUE
from benchmarks._manager import ManagerProcess
from benchmarks._process import Process
from benchmarks._quick import sized
from lab.demo.mesh.service_processes import ServiceProcess
from lab.demo.ring.home_ring import HomeRing
from tenure.cli.demo.ports import free_ports
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tenure.errors import TenureError
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token

ROWS = Table("rows", said=Family(columns=str))
ROW_COUNT = 100
MESSAGES = 10
NODES = sized(3, 1)
ARRIVES_SECONDS = 10.0
READ_AGAIN_SECONDS = 0.05
POOLS = ("bench", POOL, LIARS, "counters", "rooms", "besieged", "queues", *_attacked_services.POOLS)
RESET_PEAK = b"5"
"""What resets the peak of a process's memory, see proc(5)."""


def made_tokens(file: Path) -> dict[str, str]:
    """A token of each role, and of owners of each pool."""
    tokens, shown = TokenFile(file), {}
    roles = [(each, "") for each in AccessRole if not each.is_of_a_pool]
    for role, pool in [*roles, *((AccessRole.OWNER, pool) for pool in POOLS)]:
        made = new_token(role, pool)
        tokens.add(made.entry)
        shown[f"{role} {pool}".strip()] = made.text
    return shown


class Attacked:
    """All that is attacked, but for the 200 owners."""

    def __init__(
        self, directory: Path, manager: ManagerProcess, tokens: Mapping[str, str], rival_port: int
    ) -> None:
        self.directory = directory
        self.manager = manager
        self.tokens = tokens
        self.rival = f"http://127.0.0.1:{rival_port}"
        self.ports = free_ports(4)
        self.ring = HomeRing(directory / "ring", NODES, 0, managing=("--first-start",))
        shown = {"TENURE_TOKEN": tokens["owner queues"]}
        said = ("serve", "queues", "--manager", manager.url, "--listen", "127.0.0.1:0")
        kept = f"sqlite:{directory / 'queues.sqlite'}"
        guarded = ("--tokens", str(directory / "tokens"), "--store", kept)
        self.queue = ServiceProcess("queues", (*said, *guarded), shown)
        self.members = Process(
            "benchmarks._attacks.members", env={"TENURE_TOKEN": tokens["owner counters"]}
        )
        self.services = AttackedServices(directory, manager.url, tokens)
        self._session: aiohttp.ClientSession
        self._socket: aiohttp.ClientWebSocketResponse
        self._received: asyncio.Queue[object] = asyncio.Queue()
        self._messages = 0
        self._page: dict[str, str] = {}
        """What the page of an admin shows."""
        self.reads: list[float] = []
        self.failed_reads = 0

    async def start(self, stack: AsyncExitStack) -> None:
        """Start all of it."""
        stack.push_async_callback(self.ring.end)
        await self.ring.start()
        stack.push_async_callback(self.queue.end)
        await self.queue.start()
        await self.services.start(stack)
        hand_off, volume, *entities = (f"127.0.0.1:{port}" for port in self.ports)
        places = Places(
            manager=self.manager.url,
            rival=self.rival,
            tokens=dict(self.tokens),
            hand_off=hand_off,
            volume=volume,
            entities=(entities[0], entities[1]),
        )
        stack.push_async_callback(self.members.kill)
        await self.members.begin(msgspec.json.encode(places))
        async with open_store(self.ring.url, ROWS) as store:
            for number in range(ROW_COUNT):
                await store.insert(ROWS, f"row-{number}", {"said": {"it": b"%d" % number}})
            for at in range(LARGE_ROWS * LARGE_COLUMNS):  # one mutation has less than such a row
                row, column = divmod(at, LARGE_COLUMNS)
                said = {f"part-{column}": os.urandom(LARGE_BYTES)}
                await store.insert(ROWS, large_key(row), {"said": said})
        await self._open_queue(stack)
        stack.callback(asyncio.ensure_future(self._read_on()).cancel)
        await self._sign_in()

    async def _open_queue(self, stack: AsyncExitStack) -> None:
        headers = {"Authorization": f"Bearer {self.tokens['owner queues']}"}
        self._session = await stack.enter_async_context(aiohttp.ClientSession(headers=headers))
        url = f"{self.queue.url}/queues/{QUEUE}/socket"
        self._socket = await stack.enter_async_context(self._session.ws_connect(url))
        reading = asyncio.ensure_future(self._read_queue())
        stack.callback(reading.cancel)

    async def _read_queue(self) -> None:
        """Read the queue over one socket, as long as it is open."""
        async for said in self._socket:
            entry = said.json()
            self._received.put_nowait(entry.get("message"))
            await self._socket.send_json({"acknowledge": entry["number"]})

    async def _read_on(self) -> None:
        """Read small rows of the store, one after the other, and measure how long it takes."""
        loop = asyncio.get_running_loop()
        async with open_store(self.ring.url, ROWS) as store:
            for number in count():
                began = loop.time()
                try:
                    await store.get(ROWS, f"row-{number % ROW_COUNT}", "said", "it")
                except TenureError:
                    self.failed_reads += 1
                self.reads.append(loop.time() - began)
                await asyncio.sleep(READ_AGAIN_SECONDS)

    async def _sign_in(self) -> None:
        """Sign in at the manager's pages, as an admin."""
        url = f"{self.manager.url}/v1/sign-in"
        shows = {"token": self.tokens["admin"]}
        async with aiohttp.ClientSession() as browser, browser.post(url, json=shows) as answer:
            key = (await answer.json())["key"]
            (cookie,) = answer.cookies.values()
        self._page = {"Cookie": f"{cookie.key}={cookie.value}", "Tenure-Sign-In": key}

    async def lost_sign_ins(self) -> int:
        """Whether the admin's page is signed out: 1 if it is."""
        url = f"{self.manager.url}/v1/sign-in"
        async with aiohttp.ClientSession() as page, page.get(url, headers=self._page) as answer:
            return int(answer.status != 200)

    def targets(self) -> dict[str, Sequence[str]]:
        """What attackers are told."""
        hand_off, volume, *entities = (f"http://127.0.0.1:{port}" for port in self.ports)
        return {
            "manager": [self.manager.url],
            "service": [self.queue.url],
            "node": [f"http://127.0.0.1:{self.ring.port + n + 1}" for n in range(NODES)],
            "entities": entities,
            "volume": [volume],
            "hand_off": [hand_off],
            "files": [f"file://{self.directory}"],
            **self.services.targets(),
        }

    # --- what it cost ---

    def pids(self) -> dict[str, int]:
        """The processes."""
        ring = {f"store {name}": pid for name, pid in self.ring.pids().items()}
        members, queue = self.members.inner.pid, self.queue.process.pid
        return {
            "manager": self.manager.pid,
            "queue": queue,
            "members": members,
            **ring,
            **self.services.pids(),
        }

    def forget_peaks(self) -> dict[str, int]:
        """Have each process measure its peak from now on; the bytes that it has now."""
        for pid in self.pids().values():
            Path(f"/proc/{pid}/clear_refs").write_bytes(RESET_PEAK)
        return self.peaks()

    def peaks(self) -> dict[str, int]:
        """The most bytes of memory that each has had."""
        return {name: _peak(pid) for name, pid in self.pids().items()}

    def disk(self) -> int:
        """The bytes of all files."""
        return sum(_size(each) for each in self.directory.rglob("*"))

    async def lost_rows(self) -> int:
        """How many rows of the store are not there."""
        lost = 0
        async with open_store(self.ring.url, ROWS) as store:
            for number in range(ROW_COUNT):
                with suppress(TenureError):
                    found = await store.get(ROWS, f"row-{number}", "said", "it")
                    if found is not None and found.value == b"%d" % number:
                        continue
                lost += 1
        return lost

    async def lost_messages(self) -> int:
        """How many messages do not reach the reader of the queue; all, if its socket is gone."""
        url = f"{self.queue.url}/queues/{QUEUE}/entries"
        lost = 0
        for _ in range(MESSAGES):
            self._messages += 1
            try:
                async with asyncio.timeout(ARRIVES_SECONDS):
                    await (await self._session.post(url, json={"message": self._messages})).read()
                    while await self._received.get() != self._messages:
                        pass
            except TimeoutError:
                lost += 1
        return lost

    async def fares(self) -> Fares:
        """How the processes of pools fare."""
        return msgspec.json.decode(await self.members.say(b""), type=Fares)


def _peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    said = next(line for line in lines if line.startswith("VmHWM:"))
    return int(said.split()[1]) << 10


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_blocks * 512 if path.is_file() else 0
    return 0


@asynccontextmanager
async def attacked(
    directory: Path, manager: ManagerProcess, tokens: Mapping[str, str], rival_port: int
) -> AsyncIterator[Attacked]:
    """All of it, running."""
    made = Attacked(directory, manager, tokens, rival_port)
    async with AsyncExitStack() as stack:
        await made.start(stack)
        yield made
