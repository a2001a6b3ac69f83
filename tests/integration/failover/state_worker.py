"""A process that owns some of the keys of a pool, and keeps their lists in an OwnedState.

    python -m tests.integration.failover.state_worker STORE

It answers lines as `entity_worker` does, for the keys that it owns; of others it says that nothing
was begun.
"""

import asyncio
import os
import sys
from functools import partial

from tenure import OwnedState, Owner, TenureError, refusal
from tests.integration.failover.entity_worker import answer_lines


async def answer(ledgers: OwnedState[list[int]], line: str) -> str:
    """What becomes of a line."""
    key, _, number = line.partition(" ")
    try:
        async with ledgers.at(key) as ledger:
            found = ledger.value or []
            if number:
                ledger.value = [*found, int(number)]
    except TenureError as error:
        told = refusal(error)
        is_begun = told is None or told.headers.get("Tenure-Outcome") != "not-begun"
        return f"{'unknown' if is_begun else 'refused'} {line} {type(error).__name__}: {error}"
    return f"kept {line}" if number else f"has {key} {','.join(map(str, found))}"


async def main(store: str) -> None:
    """Answer lines until there are no more."""
    ledgers: OwnedState[list[int]] = OwnedState(value_type=list[int], store=store, ttl=3600.0)
    address = f"http://127.0.0.1:{1024 + os.getpid() % 60_000}"  # nobody asks there
    async with Owner(pool="ledgers", address=address, hand_off=ledgers):
        await answer_lines(partial(answer, ledgers))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
