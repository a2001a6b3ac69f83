"""Hosts: a network namespace and a small disk for each process, where the user may make them.

All namespaces hang on one bridge. Two hosts are cut from each other by routes that lead nowhere, on
both sides: what is under way is lost, and nobody is told. Without the rights, or without `ip`, all
processes share loopback, nothing can be cut and no disk is full; `lacks` says so.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DISK_MB = 96
HERE = 1
"""The number of the host that starts all others, on their bridge."""


def run(*command: str) -> bool:
    """Whether a command succeeds."""
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


class Hosts:
    """See above. Hosts are numbered; `HERE` is the one that we are on."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._tag = f"tn{os.getpid() % 100_000}"
        self._network = f"10.{100 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
        self._made: list[int] = []
        self._mounted: list[Path] = []
        self.has_networks = self._can_be_networks()
        self.has_disks = self._can_be_mounted()

    @property
    def lacks(self) -> list[str]:
        """What cannot go wrong here."""
        cuts = [] if self.has_networks else ["cuts (they need root, and `ip`)"]
        return cuts + ([] if self.has_disks else ["full disks (they need root, and `mount`)"])

    # --- networks ---

    def _can_be_networks(self) -> bool:
        if shutil.which("ip") is None or os.geteuid() != 0:
            return False
        return (
            run("ip", "link", "add", self._tag, "type", "bridge")
            and run(
                "ip", "addr", "add", f"{self.address(HERE, is_there=True)}/24", "dev", self._tag
            )
            and run("ip", "link", "set", self._tag, "up")
        )

    def address(self, number: int, *, is_there: bool | None = None) -> str:
        """The address of a host."""
        has_networks = self.has_networks if is_there is None else is_there
        return f"{self._network}.{number}" if has_networks else "127.0.0.1"

    def make(self, number: int) -> None:
        """Make a host."""
        if not self.has_networks:
            return
        name = f"{self._tag}.{number}"
        run("ip", "netns", "add", name)
        run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", name, "master", self._tag, "up")
        inside = "ip", "-n", name
        run(*inside, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
        run(*inside, "link", "set", "eth0", "up")
        run(*inside, "link", "set", "lo", "up")
        self._made.append(number)

    def command(self, number: int, command: list[str]) -> list[str]:
        """The command that runs a command on a host."""
        if number not in self._made:
            return command
        return ["ip", "netns", "exec", f"{self._tag}.{number}", *command]

    def cut(self, one: int, other: int) -> None:
        """Let nothing pass between two hosts."""
        self._route("add", one, other)

    def mend(self, one: int, other: int) -> None:
        """Let everything pass again."""
        self._route("del", one, other)

    def _route(self, verb: str, one: int, other: int) -> None:
        for here, there in ((one, other), (other, one)):
            on = ("-n", f"{self._tag}.{here}") if here in self._made else ()
            run("ip", *on, "route", verb, "blackhole", f"{self.address(there)}/32")

    # --- disks ---

    def _can_be_mounted(self) -> bool:
        if shutil.which("mount") is None or os.geteuid() != 0:
            return False
        place = self._place / "disk"
        place.mkdir(parents=True)
        if not run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)):
            return False
        return run("umount", str(place))

    def disk(self, name: str) -> Path:
        """A new directory on a small disk of its own."""
        place = self._place / name
        place.mkdir(parents=True)
        if self.has_disks:
            mounted = run("mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(place))
            assert mounted, f"no disk can be mounted at {place}"
            self._mounted.append(place)
        return place

    @staticmethod
    def fill(disk: Path) -> None:
        """Take all the room that a disk has left."""
        with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))

    @staticmethod
    def empty(disk: Path) -> None:
        """Give the room back."""
        (disk / "filler").unlink(missing_ok=True)

    # --- the end ---

    def end(self) -> None:
        """Remove all that was made. No process may be there any more."""
        for number in self._made:
            run("ip", "netns", "del", f"{self._tag}.{number}")
        if self.has_networks:
            run("ip", "link", "del", self._tag)
        for place in self._mounted:
            run("umount", "-l", str(place))


@contextmanager
def hosts(place: Path) -> Iterator[Hosts]:
    """Hosts, which are gone at the end."""
    found = Hosts(place)
    try:
        yield found
    finally:
        found.end()
