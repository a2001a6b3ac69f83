"""How much more a request costs a FastAPI service whose carts are entities than one with a dict.

The same service twice, in one process behind uvicorn: once each cart is in a dict, under a lock of
its own; once it is an entity, whose call is encoded, waits its turn, holds the lease, and is kept
with its answer before that is returned. The benchmark compares the CPU time that the process takes
for a request, in rounds that alternate. The cheapest round counts: whatever else the machine does
makes a round more expensive, and never cheaper.

Bound: 15 % more.
"""

import asyncio
import sys
from statistics import median

import aiohttp

from benchmarks._quick import at_most, sized
from benchmarks._rounds import line

ROUNDS = sized(60, 10)
REQUESTS = sized(300, 150)
AT_ONCE = 8
USERS = 100
BOUND = at_most(1.15)


class Asker:
    """Asks the services, and what that has cost them."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self._url = f"http://127.0.0.1:{port}"

    async def cost(self, service: str) -> float:
        """CPU seconds for a request."""
        before = await self._cpu()
        numbers = iter(range(REQUESTS))

        async def ask() -> None:
            for number in numbers:
                url = f"{self._url}/{service}/user-{number % USERS}?article=tea-{number}"
                async with self._session.post(url) as response:
                    response.raise_for_status()
                    await response.read()

        await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
        return (await self._cpu() - before) / REQUESTS

    async def _cpu(self) -> float:
        async with self._session.get(f"{self._url}/cpu") as response:
            return float(await response.json())


async def measure() -> dict[str, list[float]]:
    """The costs of each service, in alternating rounds."""
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks._counters", stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout
    found: dict[str, list[float]] = {"dict": [], "entity": []}
    try:
        async with aiohttp.ClientSession() as session:
            asker = Asker(session, int(await server.stdout.readline()))
            for service in found:
                await asker.cost(service)  # warm
            for _ in range(ROUNDS):
                for service, costs in found.items():
                    costs.append(await asker.cost(service))
    finally:
        server.terminate()
        await server.wait()
    return found


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    found = asyncio.run(measure())
    for service, costs in found.items():
        cheapest, usual = min(costs) * 1e6, median(costs) * 1e6
        print(f"{service:<8} {cheapest:8.1f} µs of CPU for a request, {usual:.1f} in the median")
    times = min(found["entity"]) / min(found["dict"])
    is_kept = times <= BOUND
    print(line("an entity beside a dict", f"{times:.3f}", f"<= {BOUND:g}", is_kept=is_kept))
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
