"""A trace from a file: what a service really saw, instead of what is drawn.

Each line is a read, `SECONDS read CLIENT SERVER FILE`, or a write, `SECONDS write SERVER FILE`, in
any order; a name is any text without a space. Empty lines and those that begin with # are ignored.
"""

from array import array
from pathlib import Path

from lab.trace.workload import Trace
from tenure.errors import ConfigurationError


def read_trace(path: Path) -> Trace:
    """The trace in a file. Raises ConfigurationError where a line cannot be read, naming it."""
    files: dict[tuple[str, str], int] = {}
    clients: dict[str, int] = {}
    reads: list[tuple[float, int, int]] = []
    writes: list[tuple[float, int]] = []
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the trace {path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        at = _seconds(fields[0], f"{path}:{number}")
        match fields[1:]:
            case ["read", client, server, file]:
                place = files.setdefault((server, file), len(files))
                reads.append((at, clients.setdefault(client, len(clients)), place))
            case ["write", server, file]:
                writes.append((at, files.setdefault((server, file), len(files))))
            case _:
                raise ConfigurationError(
                    f"{path}:{number} is {line!r}: write SECONDS read CLIENT SERVER FILE, or "
                    "SECONDS write SERVER FILE"
                )
    if not reads:
        raise ConfigurationError(f"the trace {path} has no reads")
    return _trace(files, sorted(reads), sorted(writes))


def _seconds(text: str, where: str) -> float:
    try:
        at = float(text)
    except ValueError:
        at = -1.0
    if not 0 <= at < float("inf"):
        raise ConfigurationError(f"{where} begins with {text!r}: a time is in seconds, from 0 on")
    return at


def _trace(
    files: dict[tuple[str, str], int],
    reads: list[tuple[float, int, int]],
    writes: list[tuple[float, int]],
) -> Trace:
    """Files are numbered anew, those of one server side by side."""
    order = {old: new for new, (_, old) in enumerate(sorted(files.items()))}
    servers: dict[str, int] = {}
    volume_of = array(
        "i", (servers.setdefault(server, len(servers)) for server, _ in sorted(files))
    )
    return Trace(
        volume_of,
        array("d", (at for at, _, _ in reads)),
        array("i", (client for _, client, _ in reads)),
        array("i", (order[file] for _, _, file in reads)),
        array("d", (at for at, _ in writes)),
        array("i", (order[file] for _, file in writes)),
    )
