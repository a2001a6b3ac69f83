"""The disk of a device: what it knows through all its lives."""

from pathlib import Path
from typing import Generic, TypeVar

import msgspec

K = TypeVar("K", bound=msgspec.Struct)


class DeviceDisk(Generic[K]):
    """What a device keeps, in one file, which is there whole however the device dies."""

    def __init__(self, file: Path, kind: type[K]) -> None:
        self._file = file
        self.kept = msgspec.json.decode(file.read_bytes(), type=kind) if file.exists() else kind()

    def save(self) -> None:
        """Keep what `kept` has now."""
        new = self._file.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(self.kept))
        new.replace(self._file)
