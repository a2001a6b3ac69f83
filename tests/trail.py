"""The trail that something leaves in the source: which files are passed, and in which order."""

import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

import tenure

ROOT = Path(tenure.__file__).parent


class Trail:
    """The files whose functions are called, in their order."""

    def __init__(self, not_counted: Iterable[str] = ()) -> None:
        self.files: list[str] = []
        self.calls: set[tuple[str, str]] = set()
        """The pairs of a file that calls and another one that is called."""
        self._not_counted = frozenset(not_counted)

    def _on_event(self, frame: FrameType, event: str, _: object) -> None:
        name = _name_of(frame)
        if event == "call" and name and name not in self._not_counted:
            self.files.append(name)
            before = frame.f_back and _name_of(frame.f_back)
            if before and before != name:
                self.calls.add((before, name))

    def begin(self) -> None:
        """From here on, what is called counts."""
        self.files.clear()
        sys.setprofile(self._on_event)

    def end(self) -> None:
        """Count no more."""
        sys.setprofile(None)

    @property
    def passes(self) -> int:
        """How often the trail goes from one file to another."""
        pairs = zip(self.files, self.files[1:], strict=False)
        return sum(before != after for before, after in pairs)

    @property
    def way(self) -> set[str]:
        """The files that lead on: they call one that calls others. The rest are words that these
        use, such as cells, names and levels.
        """
        calling = {before for before, _ in self.calls}
        return {before for before, after in self.calls if after in calling}

    def told(self) -> str:
        """The trail, for a reader: files on the way have a star."""
        lines = [f"{len(set(self.files))} files, {self.passes} times from one to another"]
        way = self.way
        lines += [f"  {'*' if file in way else ' '} {file}" for file in dict.fromkeys(self.files)]
        return "\n".join(lines)


def _name_of(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
