"""Arguments for Cassandra's driver that it does not take are named before anything is sent."""

import asyncio
from typing import Any

import pytest

from tenure import ConfigurationError, Family, Table, open_store

pytest.importorskip("cassandra.cluster", exc_type=ImportError)
MAIL = Table("mail", kind="hashed", profile=Family(columns=str))
NOBODY = "cassandra:127.0.0.1:1/mail"


def opened(options: dict[str, Any]) -> None:
    async def run() -> None:
        async with open_store(NOBODY, MAIL, driver=options):
            pass

    asyncio.run(run())


@pytest.mark.parametrize("name", ["contact_points", "colour"])
def test_an_argument_that_the_driver_does_not_take_is_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"`driver` gives \({name}\): .*{name}"):
        opened({name: ["10.0.0.1"]})


def test_an_argument_of_the_wrong_kind_is_named_and_no_value_is_shown() -> None:
    with pytest.raises(ConfigurationError, match=r"\(execution_profiles\)") as refused:
        opened({"execution_profiles": 73_313})
    assert "73313" not in str(refused.value)
