"""Commands that go on until a signal ends them."""

import signal

from tenure.cli.long_run import ENDING, run_long, told_to_end


def test_signals_go_where_they_went_before() -> None:
    before = [signal.getsignal(number) for number in ENDING]

    async def until_told() -> None:
        told = told_to_end()
        signal.raise_signal(signal.SIGTERM)
        await told.wait()

    run_long(until_told)
    assert [signal.getsignal(number) for number in ENDING] == before
