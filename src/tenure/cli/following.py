"""Following what happens at the leader, and whoever leads after it."""

import http.client
from collections.abc import Iterator, Sequence
from contextlib import closing

import msgspec

from tenure.cli.asking import connection_to, get, why_not
from tenure.errors import MALFORMED, NoManager, TenureError
from tenure.manager.answers import Problem, StatusAnswer
from tenure.manager.live import QUIET_SECONDS, LiveEvent, Pulse

PROBLEM_BYTES = 64 << 10
"""The most that is read of a refusal."""
STATUS_SECONDS = 3.0
SILENT_SECONDS = 2 * QUIET_SECONDS
"""A manager that is well says something in half of it."""


def leader_of(managers: Sequence[str]) -> str:
    """The URL of the leader, as the first manager says that knows. Raises NoManager."""
    why = []
    for url in managers:
        try:
            status = get(url.rstrip("/"), "/v1/status", STATUS_SECONDS).read(StatusAnswer)
        except TenureError as error:
            why.append(f"{url}: {error}")
            continue
        if status.leader:
            return status.leader
        why.append(f"{url}: no leader is known")
    raise NoManager(
        f"no manager leads: {'; '.join(why)}. Start one with `tenure manager`, or name others with "
        "--manager URL"
    )


def live(url: str, level: str, since: str = "0") -> Iterator[LiveEvent | Pulse]:
    """Yield the events of one manager after the event `since`. Raises NoManager when the stream
    ends.
    """
    connection, headers = connection_to(url, SILENT_SECONDS)
    with closing(connection):
        try:
            connection.request("GET", f"/v1/live?level={level}&since={since}", headers=headers)
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                problem = msgspec.json.decode(response.read(PROBLEM_BYTES), type=Problem)
                raise TenureError(f"{url}: {problem.error}. To fix it: {problem.way_out}")
            yield from _parsed(response)
        except (OSError, http.client.HTTPException, *MALFORMED) as error:
            raise NoManager(f"{url}: {why_not(error, SILENT_SECONDS)}") from error
    raise NoManager(f"{url}: it ended the stream")


def recent(url: str, level: str = "info") -> list[LiveEvent]:
    """Return a manager's latest events: everything that comes before the first pulse."""
    found = []
    stream = live(url, level)
    for each in stream:
        if isinstance(each, Pulse):
            break
        found.append(each)
    stream.close()  # type: ignore[attr-defined]  # it is a generator
    return found


def _parsed(response: http.client.HTTPResponse) -> Iterator[LiveEvent | Pulse]:
    kind = b""
    for line in response:
        name, _, value = line.rstrip(b"\n").partition(b": ")
        if name == b"event":
            kind = value
        elif name == b"data" and kind == b"noted":
            yield msgspec.json.decode(value, type=LiveEvent)
        elif name == b"data" and kind == b"pulse":
            yield msgspec.json.decode(value, type=Pulse)
