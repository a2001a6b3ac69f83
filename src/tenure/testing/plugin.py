"""pytest's plugin: an option, and a fixture. Pytest loads it in every project that has tenure, so
it imports nothing of tenure until it is used.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tenure.testing.cluster import InProcessCluster

OPTION = "--tenure-seed"


def pytest_addoption(parser: pytest.Parser) -> None:
    """See pytest."""
    parser.getgroup("tenure").addoption(
        OPTION,
        metavar="SEED",
        default=None,
        help="run simulated tests under this one seed, such as one that failed",
    )


def pytest_configure(config: pytest.Config) -> None:
    """See pytest. Raises UsageError if the value is not a seed."""
    given: Any = config.getoption(OPTION)
    if given is None:
        return
    if not (given.isascii() and given.isdecimal()):
        raise pytest.UsageError(
            f"{OPTION} takes a number, from 0 on, as a failing test names it, not {given!r}"
        )
    from tenure.testing.simulation import ONLY_SEED  # noqa: PLC0415  # only who asks pays for it

    ONLY_SEED["seed"] = int(given)


@pytest.fixture
def tenure_cluster() -> "Iterator[InProcessCluster]":
    """An InProcessCluster whose clock is turned by hand, without pools; see `serve` too."""
    from tenure.testing.clock import TurnedClock  # noqa: PLC0415
    from tenure.testing.cluster import InProcessCluster  # noqa: PLC0415

    with InProcessCluster(clock=TurnedClock()) as cluster:
        yield cluster
