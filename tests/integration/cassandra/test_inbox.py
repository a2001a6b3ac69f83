"""The example `inbox.py`, unchanged but for what the driver is told, on Cassandra."""

import subprocess
import sys
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.integration.cassandra import cql_server, server
from tests.integration.cassandra.server import Cassandra
from tests.repo.reading import ROOT

EXAMPLE = (ROOT / "examples" / "inbox.py").read_text("utf-8")


@pytest.fixture(params=["1.2.0", "small server"])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[int, dict[str, object]]]:
    """A port, and what a driver must be told there."""
    if request.param == "1.2.0":
        running: Cassandra = request.getfixturevalue("old_cassandra")
        yield running.cql_port, dict(server.DRIVER_OPTIONS)
        return
    with cql_server.small_server() as small:
        yield small.port, dict(cql_server.DRIVER_OPTIONS)


def test_mails_are_found_by_word(place: tuple[int, dict[str, object]]) -> None:
    port, options = place
    program = EXAMPLE.replace("create=create", f"create=create, driver={options!r}")
    assert program != EXAMPLE
    url = f"cassandra:127.0.0.1:{port}/k{uuid4().hex}"

    def inbox(*arguments: str) -> list[str]:
        command = [sys.executable, "-c", program, url, *arguments]
        return subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout.splitlines()

    for text in ("tea at four?", "no tea today"):
        assert inbox("send", "ann", "bob", text) == ["kept"]
    assert inbox("search", "bob", "tea") == ["no tea today", "tea at four?"]
