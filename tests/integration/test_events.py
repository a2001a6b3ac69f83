"""`tenure events --follow` and `tenure top --json`, as programs read them until Ctrl-C."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenure.cli.demo.ports import free_ports
from tests.integration.processes import manager, run
from tests.integration.programs import Program, program
from tests.patience import DEADLINE_SECONDS

TENURE = Path(sys.executable).with_name("tenure")


@contextmanager
def managing(port: int) -> Iterator[None]:
    """A manager that leads."""
    with manager(port=port) as started:
        started.wait_for("leading")
        yield


def make_pool(url: str, name: str) -> None:
    done = run("pool", "create", name, "--kind", "hashed", "--manager", url)
    assert done.returncode == 0, done.stderr


def ends_by_ctrl_c(follows: Program) -> bool:
    follows.send(signal.SIGINT)
    return follows.process.wait(DEADLINE_SECONDS) == 0


def test_events_are_followed_to_the_next_leader() -> None:
    ports = free_ports(2)
    one, two = (f"http://127.0.0.1:{port}" for port in ports)
    with program(TENURE, "events", "--follow", "--json", "-m", one, "-m", two) as follows:
        with managing(ports[0]):
            make_pool(one, "rooms")
            made = json.loads(follows.wait_for('"pool created"'))
            assert (made["pool"], made["level"]) == ("rooms", "info")
        follows.wait_for("trying again until Ctrl-C")
        with managing(ports[1]):
            make_pool(two, "halls")
            follows.wait_for(f"following {two}")
            assert json.loads(follows.wait_for('"pool created"'))["pool"] == "halls"
            assert ends_by_ctrl_c(follows)


def test_top_tells_how_a_pool_is_again_and_again() -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with managing(port):
        make_pool(url, "rooms")
        with program(TENURE, "top", "rooms", "--json", "--every", "0.1", "-m", url) as follows:
            seen = [json.loads(follows.wait_for('"pool":"rooms"')) for _ in range(3)]
            assert seen[0]["at"] < seen[1]["at"] < seen[2]["at"]
            assert ends_by_ctrl_c(follows)
