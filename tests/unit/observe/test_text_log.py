"""The log as text: nobody whose words are in it can write a line of it."""

import io
import logging

from tenure.observe.text_log import TextFormatter


def written(log: logging.Logger) -> list[str]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter())
    log.addHandler(handler)
    try:
        log.warning("closing the connection to %s: %s", "ünï", "x\n2026-01-01 ERROR lost\x1b[2J")
        try:
            int("ours")
        except ValueError:
            log.exception("it has failed")
    finally:
        log.removeHandler(handler)
    return stream.getvalue().splitlines()


def test_each_record_is_one_line_and_a_traceback_stays_readable() -> None:
    said, failed, *traceback = written(logging.getLogger("tenure.test_text_log"))
    assert said.isprintable()
    assert said.endswith(r" WARNING closing the connection to ünï: x\n2026-01-01 ERROR lost\x1b[2J")
    assert failed.endswith(" ERROR it has failed")
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[-1] == "ValueError: invalid literal for int() with base 10: 'ours'"
