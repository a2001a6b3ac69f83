"""The log as text: one line for each record, whatever is in it, and a traceback behind it."""

import logging

from tenure.observe.events import printable


class TextFormatter(logging.Formatter):
    """Shows what could break a line, or steer a terminal, as an escape. Names of tables, reasons
    for which a peer closed a connection and errors of what it sent are its own words: with a line
    break in them it could otherwise write lines of this log.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # of logging
        """See `logging.Formatter`: all but the traceback."""
        return printable(super().formatMessage(record))
