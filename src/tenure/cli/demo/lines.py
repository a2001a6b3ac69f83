"""The demo without a terminal: a line for each event, and now and then one for how it goes."""

from typing import TextIO

from tenure.cli.demo.display import DemoState, OwnerRow

STATUS_SECONDS = 5.0


class Lines:
    """Plain lines on a stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next_status = STATUS_SECONDS

    def event(self, at: float | None, text: str) -> None:
        when = " " * 8 if at is None else f"{at:6.1f} s"
        self._stream.write(f"{when}  {text}\n")
        self._stream.flush()

    def show(self, picture: DemoState) -> None:
        if picture.elapsed >= self._next_status:
            while self._next_status <= picture.elapsed:
                self._next_status += STATUS_SECONDS
            self.event(picture.elapsed, status(picture))

    def close(self) -> None:
        self._stream.flush()


def status(picture: DemoState) -> str:
    """How it goes, in a line."""
    totals = picture.totals
    return (
        f"{picture.requests_per_second:.0f} requests/s; "
        f"keys: {', '.join(map(share, picture.owners))}; "
        f"failed {totals.failed:,}, rerouted {totals.rerouted:,}, "
        f"losses {totals.losses_signalled:,}, republished {totals.keys_republished:,}, "
        f"two owners at once {picture.double_owner:,}"
    )


def share(row: OwnerRow) -> str:
    """Return what an owner has, in a few words."""
    state = "" if row.state == "serving" else f" ({row.state})"
    return f"owner {row.number} {row.share:.0%}{state}"
