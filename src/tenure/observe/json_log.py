"""The log as JSON: a line for each record, with what happened, where, and its cause, as fields.

The lines of all processes concerned have the same cause. So one query over the logs of managers and
services shows a story, from the crash of an owner to the last lookup that was informed.
"""

import json
import logging
from datetime import UTC, datetime

from tenure.base.noted import NOTED, Noted


class JsonFormatter(logging.Formatter):
    """For a handler of the standard log: `handler.setFormatter(JsonFormatter())`.

    Every record has `at`, `level`, `logger` and `message`. An event that a machine noted has
    `kind`, `pool`, `detail` and `cause`, too; an error has `error`, with its traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        said = {
            "at": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        noted = getattr(record, NOTED, None)
        if isinstance(noted, Noted):
            said |= {"kind": noted.kind.phrase, "pool": noted.pool}
            said |= {"detail": noted.detail, "cause": noted.cause}
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said)  # ASCII: nothing in it can break a line
