"""The plugin for pytest: an option and a fixture."""

import subprocess
import sys
from pathlib import Path

import pytest

# The plugin is loaded as a module: its entry point exists only where tenure was installed after it
# got one. The plugins that have no part in it are left out, because their imports take seconds.
PYTEST = (
    *(sys.executable, "-m", "pytest", "-q", "-p", "no:tenure", "-p", "tenure.testing.plugin"),
    *("-p", "no:schemathesis", "-p", "no:hypothesispytest", "-p", "no:xdist"),
)

USES_THE_FIXTURE = """
async def test_the_cluster_is_there(tenure_cluster):
    await tenure_cluster.turn(1)
    assert tenure_cluster.leader
"""
RUNS_SEEDS = """
from tenure.testing import World, simulated

@simulated("service:app", seeds=2, minutes=0.2, faults="none")
async def test_seed(world: World, tmp_path) -> None:
    print("seed", world.seed, tmp_path.name)
    for _ in range(20):
        await world.get("/rooms/attic")
"""
SERVICE = (Path(__file__).parent / "rooms" / "chat.py").read_text("utf-8")


def ran(folder: Path, test: str, *options: str) -> "subprocess.CompletedProcess[str]":
    (folder / "test_it.py").write_text(test, "utf-8")
    (folder / "service.py").write_text(SERVICE, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n", "utf-8")
    return subprocess.run(
        [*PYTEST, *options], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    "options", [("-o", "asyncio_mode=auto"), ("-p", "no:asyncio", "-o", "anyio_mode=auto")]
)
def test_the_fixture_works_with_either_plugin_for_coroutines(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    came = ran(tmp_path, USES_THE_FIXTURE, *options)
    assert "1 passed" in came.stdout, came.stdout


def test_the_seed_that_is_asked_for_is_the_one_that_runs(tmp_path: Path) -> None:
    came = ran(tmp_path, RUNS_SEEDS, "-s", "--tenure-seed", "4711")
    assert "seed 4711 test_seed" in came.stdout, came.stdout
    assert came.stdout.count("seed ") == 1


def test_a_seed_that_is_no_number_is_refused(tmp_path: Path) -> None:
    came = ran(tmp_path, RUNS_SEEDS, "--tenure-seed", "first")
    assert came.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--tenure-seed takes a number" in came.stderr
