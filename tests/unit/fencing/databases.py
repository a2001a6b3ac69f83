"""Databases to try fences in: SQLite in a file, and a PostgreSQL server if one is installed."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POSTGRES_VARIABLE = "TENURE_TEST_POSTGRES"
"""A connection string, for tests with a server that runs already."""
PLACES = ("/usr/lib/postgresql", "/usr/local/lib/postgresql", "/opt/homebrew/opt")


def postgres_programs() -> Path | None:
    """Return where `initdb` and `postgres` are; None if they are not installed."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    there = [path for place in PLACES for path in Path(place).glob("*/bin/initdb")]
    return max(there).parent if there else None


@contextmanager
def postgres_server() -> Iterator[str]:
    """A server of our own, on a socket in a directory; the connection string."""
    programs = postgres_programs()
    assert programs is not None
    with tempfile.TemporaryDirectory(prefix="tenure-pg-") as place:
        directory, data = Path(place), Path(place, "data")
        as_other: dict[str, object] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            as_other = {"user": "nobody", "group": "nogroup", "extra_groups": []}
            shutil.chown(directory, "nobody", "nogroup")
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "tenure", "-A", "trust", "--no-sync"],
            check=True,
            capture_output=True,
            **as_other,  # type: ignore[call-overload]
        )
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", directory, "-c", "listen_addresses="],
            stderr=subprocess.PIPE,
            text=True,
            **as_other,  # type: ignore[call-overload]
        )
        try:
            assert server.stderr is not None
            for line in server.stderr:
                if "ready to accept connections" in line:
                    break
            yield f"host={directory} user=tenure dbname=postgres"
        finally:
            server.send_signal(signal.SIGINT)  # it ends sessions that a failed test has left
            server.communicate()
