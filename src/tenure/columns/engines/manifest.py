"""Notes the length of the file that names all others of a store: RocksDB mistakes a truncated one
for whole.

The manifest is a log of which files exist. RocksDB syncs each of its lines. If lines at its end are
missing, RocksDB opens the store without the files that they name, and removes those files. A crash
never makes the manifest shorter; only a disk does that loses what it has synced, or somebody who
copies a store while it is open. So the watch keeps its length in a file beside it, once that much
of it is synced.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from tenure.errors import MALFORMED, StoreDamaged
from tenure.runtime import private_files

MARK = "tenure-manifest.json"


class ManifestMark(msgspec.Struct, frozen=True):
    name: str
    bytes: int


class ManifestWatch:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._noted = ManifestMark("", 0)

    def note(self) -> None:
        """Keep its length, if it has grown. If the disk refuses, only the note is lost."""
        with suppress(OSError):
            name = self._noted.name
            if not name or not (self._path / name).exists():
                name = (self._path / "CURRENT").read_text().strip()
            size = (self._path / name).stat().st_size
            seen = ManifestMark(name, size)
            if seen != self._noted:
                private_files.sync(self._path / name)
                draft = self._path / f".{MARK}"
                draft.write_bytes(msgspec.json.encode(seen))
                draft.rename(self._path / MARK)
                self._noted = seen


def check_manifest(path: Path) -> None:
    """Raise StoreDamaged if the manifest is shorter than it was."""
    try:
        said = msgspec.json.decode((path / MARK).read_bytes(), type=ManifestMark)
        name = (path / "CURRENT").read_text().strip()
        size = (path / name).stat().st_size
    except (OSError, *MALFORMED):
        return  # there is no note, or RocksDB reports the damage
    if name == said.name and size < said.bytes:
        raise StoreDamaged(
            f"{path / name} has {size} bytes, and had {said.bytes}: it names the files of the "
            "store, and some would be removed; nothing was touched. Restore a backup: tenure "
            "columns restore"
        )
