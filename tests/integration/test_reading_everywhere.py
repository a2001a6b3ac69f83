"""The auction of the guide, in processes of which each answers for all."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tenure.cli.demo.ports import free_ports
from tests.integration.processes import manager
from tests.patience import DEADLINE_SECONDS, blocking_until
from tests.repo.reading import ROOT

BIDS = 200


class Auctions:
    """One process, and whether it answers."""

    def __init__(self, manager_url: str, directory: Path) -> None:
        [self.port] = free_ports(1)
        self._log = (directory / f"log-{self.port}").open("wb")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "uvicorn", "auction:app", "--port", str(self.port)),
                *("--app-dir", str(ROOT / "examples")),
            ],
            cwd=directory,
            env={**os.environ, "TENURE_MANAGERS": manager_url},
            stdout=self._log,
            stderr=self._log,
        )
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", timeout=DEADLINE_SECONDS
        )

    def answers(self) -> bool:
        try:
            return self.highest("any") >= 0
        except httpx.TransportError:
            return False

    def bid(self, item: str, amount: int) -> None:
        params: dict[str, str | int] = {"amount": amount, "bidder": "ann"}
        assert self.client.post(f"/auctions/{item}", params=params).json() is True

    def highest(self, item: str) -> int:
        found: int = self.client.get(f"/auctions/{item}").raise_for_status().json()["amount"]
        return found

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(DEADLINE_SECONDS)
        self.client.close()
        self._log.close()


@contextmanager
def processes(directory: Path, count: int) -> Iterator[list[Auctions]]:
    with manager("--first-start", preset="default") as beside:
        url = beside.wait_for("listening")["url"]
        all_ = [Auctions(url, directory) for _ in range(count)]
        try:
            for each in all_:
                blocking_until(each.answers, "it answers")
            yield all_
        finally:
            for each in all_:
                each.end()


def test_every_process_reads_each_bid_that_was_answered_and_lives_on_when_another_dies(
    tmp_path: Path,
) -> None:
    with processes(tmp_path, 3) as (one, two, three):
        for amount in range(1, BIDS + 1):
            bidding, *others = ((one, two), (two, one), (one, three))[amount % 3]
            item = f"item-{amount % 7}"
            bidding.bid(item, amount)
            assert all(each.highest(item) >= amount for each in others)
        three.process.kill()

        def is_answered() -> bool:
            answers = [two.client.get(f"/auctions/item-{i}").status_code for i in range(7)]
            return answers == [200] * 7

        blocking_until(is_answered, "somebody else has the keys of the one that died")
        for i in range(7):
            one.bid(f"item-{i}", BIDS * 2)
            assert two.highest(f"item-{i}") == BIDS * 2
