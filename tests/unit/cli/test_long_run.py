"""Commands that go on until a signal ends them."""

import logging
import signal

import pytest

from tenure.cli.long_run import ENDING, log_to_standard_error, run_long, told_to_end


def test_signals_go_where_they_went_before() -> None:
    before = [signal.getsignal(number) for number in ENDING]

    async def until_told() -> None:
        told = told_to_end()
        signal.raise_signal(signal.SIGTERM)
        await told.wait()

    run_long(until_told)
    assert [signal.getsignal(number) for number in ENDING] == before


def test_what_strangers_offer_as_protocols_is_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("aiohttp.websocket")
    monkeypatch.setattr(logger, "level", logger.level)
    log_to_standard_error("info", "text")
    assert not logger.isEnabledFor(logging.WARNING)
