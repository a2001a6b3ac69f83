"""The library itself, in processes of a simulated world of leases, under all its faults."""

import asyncio
from collections.abc import Callable

import pytest

from lab.mutants.catalogue import mutant
from lab.mutants.running import run_without
from tenure import Lookup, NotOwner, OwnedState, Owner, TenureError
from tenure.errors import ConfigurationError, NotSimulated
from tenure.sim.app.processes import AppProcess, Main
from tenure.sim.app.strikes import FAULTS
from tenure.sim.app.world import AppTrial, AppWorld, run_in
from tenure.sim.kernel.checkers import Violation

ROOMS = ("attic", "cellar", "hall")
QUIET: tuple[str, ...] = ()
MINUTE = 1 / 60


async def service(process: AppProcess) -> None:
    """Counts in three rooms, each second, wherever they are."""
    counts: OwnedState[int] = OwnedState(value_type=int)
    leave = asyncio.Event()
    process.leave = leave.set

    async def count(room: str) -> None:
        while True:
            await asyncio.sleep(1)
            try:
                async with counts.at(room) as it:
                    it.value = (it.value or 0) + 1
                process.site.count_note("counted")
            except NotOwner:
                process.site.count_note("refused")
            except TenureError:
                process.site.count_note("lost")

    address = f"http://127.0.0.1:{process.uid}"
    async with Owner(pool="rooms", address=address, hand_off=counts), Lookup(pool="rooms"):
        tasks = [asyncio.create_task(count(room)) for room in ROOMS]
        await leave.wait()
        for task in tasks:
            task.cancel()


def ran(
    seed: int,
    faults: tuple[str, ...] = FAULTS.kinds,
    minutes: float = 3,
    main: Main = service,
) -> AppWorld:
    world = AppWorld(AppTrial(seed=seed, faults=faults, hours=minutes * MINUTE), main)
    run_in(world)
    return world


def test_without_faults_every_key_is_served_and_every_count_is_kept() -> None:
    world = ran(1, QUIET, minutes=1)
    assert world.notes["counted"] > 3 * 40
    assert world.notes["lost"] == 0


@pytest.mark.parametrize("seed", range(4))
def test_under_all_faults_the_library_has_one_owner_for_a_key(seed: int) -> None:
    world = ran(seed)
    assert world.notes["counted"] > 0
    assert sum(world.faults.counts.values()) > 10


def test_a_seed_is_the_same_run_each_time() -> None:
    assert ran(5).story.fingerprint == ran(5).story.fingerprint


def test_the_checkers_see_what_the_library_believes() -> None:
    assert run_without(mutant("lease", "lapsed-lease-revived"), is_broken_by_a_seed)


def is_broken_by_a_seed() -> bool:
    def breaks_it(seed: int) -> bool:
        try:
            ran(seed, minutes=10)
        except (Violation, AssertionError):
            return True
        return False

    return any(breaks_it(seed) for seed in range(40))


async def reaches_out(process: AppProcess) -> None:
    try:
        await asyncio.open_connection("127.0.0.1", 1)
    except NotSimulated:
        await asyncio.sleep(1000)  # it swallows the error, and would hide what it did


async def cannot_be(process: AppProcess) -> None:
    Owner(pool="", address="http://127.0.0.1:1")


async def has_a_bug(process: AppProcess) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("main", "error"),
    [
        (reaches_out, NotSimulated),
        (cannot_be, ConfigurationError),
        (has_a_bug, ZeroDivisionError),
    ],
)
def test_a_program_that_cannot_be_simulated_ends_the_run(
    main: Callable[..., object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        ran(1, QUIET, main=main)  # type: ignore[arg-type]
