"""The log as JSON: every record is one object, whatever is in it."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from tenure import Lookup, Owner
from tenure.base.noted import Noted
from tenure.observe.events import Observer
from tenure.observe.json_log import JsonFormatter
from tenure.protocol.lease.leader.noted import LeaderKind
from tests.patience import until
from tests.unit.manager.serving import serving


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("tenure")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(before)


def lines(stream: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_what_was_noted_is_there_as_fields(written: io.StringIO) -> None:
    Observer("tenure.test").note(Noted(LeaderKind.EXPIRED, "rooms", "ann (3)", "1.7"))
    found = lines(written)[0]
    assert found.pop("at").endswith("+00:00")
    assert found == {
        "level": "warning",
        "logger": "tenure.test",
        "message": "[rooms] owner expired: ann (3) (cause 1.7)",
        "kind": "owner expired",
        "pool": "rooms",
        "detail": "ann (3)",
        "cause": "1.7",
    }


def test_any_text_and_any_error_stay_one_line(written: io.StringIO) -> None:
    logger = logging.getLogger("tenure.test")
    logger.info("two\nlines, \u2028 and %s", "\x00 \x1b[31m")
    try:
        int("no\nway")
    except ValueError:
        logger.exception("it broke")
    first, second = lines(written)
    assert first["message"] == "two\nlines, \u2028 and \x00 \x1b[31m"
    assert "ValueError: invalid literal" in second["error"]


@pytest.mark.asyncio
async def test_one_cause_is_in_the_lines_of_manager_owner_and_lookup(written: io.StringIO) -> None:
    async with serving() as manager:
        url = manager.service.url
        async with Owner(url, pool="rooms", address="http://a", name="ann") as ann:
            await ann.ready()
            async with (
                Lookup(url, pool="rooms"),
                Owner(url, pool="rooms", address="http://b", name="bob") as bob,
            ):
                await until(lambda: len(loggers_of_the_story(written)) >= 3)
                assert bob.pool == "rooms"


def loggers_of_the_story(written: io.StringIO) -> set[str]:
    """Return the loggers that have a line with the cause of bob's joining."""
    found = lines(written)
    causes = [each["cause"] for each in found if "owner joined: bob" in each["message"]]
    return {each["logger"] for each in found if causes and causes[0] in each.get("cause", "")}
