"""Passes a program's output on, and keeps its last lines, to be told again when all have run.

A log of an hour is read from its end, and often only its end is kept: what a benchmark said that
failed in the middle has to stand there, too.
"""

import os
import sys
from collections import deque
from contextlib import suppress
from threading import Thread
from typing import Self

KEPT = 25


class LastLines:
    """The last lines of a program that writes to `fd`. `with`: it passes output on until then."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=KEPT)
        self._reads, self.fd = os.pipe()
        self._thread = Thread(target=self._pass_on, name="output", daemon=True)

    @property
    def text(self) -> str:
        return b"".join(self._lines).decode(errors="replace")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
        self._thread.join()

    def _pass_on(self) -> None:
        with os.fdopen(self._reads, "rb") as output:
            for line in output:
                self._lines.append(line)
                with suppress(BrokenPipeError):
                    sys.stdout.buffer.write(line)
                    sys.stdout.buffer.flush()
