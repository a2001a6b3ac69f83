"""`tenure entities export` and `import`: the entities of a pool as a file, and back."""

import hashlib
import http.client
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

from cyclopts import Parameter
from msgspec import structs

from tenure.cli.asking import (
    HttpReply,
    ManagerUrls,
    PoolName,
    ask_leader,
    connection_to,
    get_reply,
    path,
    post,
)
from tenure.cli.export_file import EntityPart, ExportFile, FileEntity
from tenure.cli.output import remark, say
from tenure.cli.waiting import WaitingLine
from tenure.errors import NoManager, PoolError, TenureError, UsageError
from tenure.manager.entity_files import (
    IMPORT_SECONDS,
    MOST_PUTS,
    PATIENCE_SECONDS,
    GivenEntity,
    ImportAnswer,
    ImportBody,
    ImportOutcome,
)
from tenure.manager.inspections import ANSWER_SECONDS
from tenure.protocol.entity.export_lines import (
    LINE_BYTES,
    AgainLine,
    CutLine,
    EndLine,
    EntityLine,
    read_line,
)
from tenure.runtime import private_files

CHUNK_BYTES = 1 << 16
SILENT_SECONDS = 2 * PATIENCE_SECONDS
"""How long an export may say nothing: a manager waits for an owner before it gives up."""
OVER_SECONDS = IMPORT_SECONDS + ANSWER_SECONDS + 5
"""After so long nothing begins any more of a request that got no answer."""
PATIENT_SECONDS = 120.0
"""How long an import tries to get on with an entity."""
PAUSE_SECONDS = 1.0
BATCH_BYTES = 1 << 20
SHOWN = 20
"""How many entities that were not imported are named."""
File = Annotated[Path | None, Parameter(help="The file; by default standard output.")]


# --- export ---


def export(pool: PoolName, file: File = None, /, *, manager: ManagerUrls = None) -> None:
    """Write all entities of a pool to a file, as lines of JSON.

    Each entity is as one commit has left it, and they are read one after the other. The last line
    has a checksum: without it, a file is not whole, and `import` refuses it.
    """
    reading = ExportReading()
    with _opened(file) as out:
        target = path(pool, "entities/export")
        reading.out = out
        try:
            ask_leader(manager, lambda url: reading.read(url, target), reading.told)
        except OutputFailed as failed:
            raise failed.error from None
        reading.check()
    where = "" if file is None else f" to {file}"
    remark(f"{reading.told()} exported{where}")


class OutputFailed(Exception):
    """The output takes no more. It is no OSError: that would be said of the manager that is read,
    and the next one would be asked.
    """

    def __init__(self, error: OSError) -> None:
        self.error = error


class ExportReading:
    """An export while it is read."""

    def __init__(self) -> None:
        self.out: BinaryIO
        self.entities = 0
        self._digest = hashlib.sha256()
        self._lines = 0
        self._end: EndLine | None = None

    def told(self) -> str:
        """The progress."""
        return f"{self.entities:,} entities, {self._lines:,} lines"

    def read(self, url: str, target: str) -> HttpReply:
        """Read it from one manager."""
        connection, headers = connection_to(url, SILENT_SECONDS)
        try:
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                return HttpReply(response.status, response.read(CHUNK_BYTES))
            try:
                while line := response.readline(LINE_BYTES + 1):
                    self._take(line)
            except (OSError, http.client.HTTPException) as error:
                raise _cut(f"{url} has gone: {type(error).__name__}") from error
            return HttpReply(response.status, b"")
        finally:
            connection.close()

    def _take(self, data: bytes) -> None:
        try:
            line = read_line(data)
        except ValueError as error:
            raise _cut(f"line {self._lines + 1} cannot be read: {error}") from None
        match line:
            case CutLine():
                raise _cut(f"{line.why}. To fix it: {line.way_out}")
            case EndLine():
                self._end = line
            case EntityLine():
                self.entities += 1
            case AgainLine():
                self.entities -= 1
        if self._end is None:
            self._digest.update(data)
            self._lines += 1
        try:
            self.out.write(data)
        except OSError as error:
            raise OutputFailed(error) from error

    def check(self) -> None:
        """Raise TenureError unless all of it has come."""
        end = self._end
        if end is None:
            raise _cut("it has ended without its last line")
        if (end.lines, end.sha256) != (self._lines, self._digest.hexdigest()):
            raise _cut("its checksum is of other lines")


def _cut(why: str) -> TenureError:
    return TenureError(
        f"the export was cut, and what was written is not whole: {why}. Run the command again"
    )


@contextmanager
def _opened(file: Path | None) -> Iterator[BinaryIO]:
    """Where the lines go. A file is there under its name when it is whole."""
    if file is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if file.exists() and not file.is_file():
        raise UsageError(f"{file} is no file: leave it out for standard output")
    begun: Path | None = None
    try:
        # Only its user can read it: it has what the application keeps. Another export has another.
        handle, name = tempfile.mkstemp(".part", f"{file.name}.", file.parent)
        begun = Path(name)
        with os.fdopen(handle, "wb") as out:
            yield out
            out.flush()
            os.fsync(handle)
        begun.replace(file)
        private_files.sync(file.parent)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        if begun is not None:
            begun.unlink(missing_ok=True)


# --- import ---


def import_(
    pool: PoolName,
    file: Annotated[Path, Parameter(help="A file that `tenure entities export` has written.")],
    /,
    *,
    replace: bool = False,
    from_pool: str | None = None,
    manager: ManagerUrls = None,
) -> None:
    """Put all entities of an export into a pool, through their owners.

    Nothing is begun unless the file is whole. An entity that is there stays as it is; run it again
    after it was cut, and it goes on.

    Parameters
    ----------
    replace
        Put it in place of another entity that is there under the same key.
    from_pool
        The pool of the export, if that is another one.
    """
    try:
        with file.open("rb") as opened:
            _import(pool, ExportFile(opened, file), manager, from_pool, replaces=replace)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from error


def _import(
    pool: str, file: ExportFile, manager: list[str] | None, from_pool: str | None, *, replaces: bool
) -> None:
    with WaitingLine(lambda: f"checking the file: {file.entities:,} entities"):
        file.check()
    if file.head.pool != (from_pool or pool):
        raise UsageError(
            f"this is an export of the pool {file.head.pool!r}, and not of {from_pool or pool!r}: "
            f"if it is to go into {pool!r}, say --from-pool {file.head.pool}"
        )
    work = ImportRun(pool, file.head.kind, manager, replaces=replaces)
    with WaitingLine(lambda: work.told(file.entities)):
        for entity in file.each():
            work.add(entity, file)
        work.send()
    say(work.told(file.entities))
    if work.left:
        raise PoolError(f"not imported: {work.why_left()}")


class ImportRun:
    """An import while it runs."""

    def __init__(self, pool: str, kind: str, manager: list[str] | None, *, replaces: bool) -> None:
        self._pool = pool
        self._kind = kind
        self._manager = manager
        self._replaces = replaces
        self._url = ""
        self._batch: list[tuple[FileEntity, GivenEntity]] = []
        self._bytes = 0
        self.put = self.same = 0
        self.left: list[tuple[FileEntity, str]] = []
        """Those that were not imported, and why; the first ones."""
        self._left = 0

    def told(self, of: int) -> str:
        """The progress, or the result."""
        told = f"{self.put:,} of {of:,} entities imported, {self.same:,} were there"
        return f"{told}, {self._left:,} left out" if self._left else told

    def why_left(self) -> str:
        """Which were left out, in words."""
        named = [f"{each.key!r} (line {each.number}): {why}" for each, why in self.left]
        more = self._left - len(named)
        return "; ".join([*named, *([f"and {more:,} more"] if more else [])])

    def add(self, entity: FileEntity, file: ExportFile) -> None:
        """Import this one, soon."""
        parts = file.parts(entity)
        first = next(parts)
        if first.is_last:
            self._batch.append((entity, _given(entity, first)))
            self._bytes += len(first.lines)
            if len(self._batch) >= MOST_PUTS or self._bytes >= BATCH_BYTES:
                self.send()
            return
        self.send()
        self._add_in_parts(entity, file)

    def send(self) -> None:
        """Import what was added."""
        batch, self._batch, self._bytes = self._batch, [], 0
        gives_up = time.monotonic() + PATIENT_SECONDS
        while batch:
            later = []
            for (entity, given), outcome in zip(batch, self._asked(batch), strict=True):
                match outcome.outcome:
                    case "later":
                        if time.monotonic() > gives_up:
                            raise self._given_up(outcome)
                        later.append((entity, given))
                    case "differs" if self._replaces and not given.replaces:
                        later.append((entity, _replacing(given, outcome.there)))
                    case _:
                        self._settle(entity, outcome)
            if later and len(later) == len(batch):
                time.sleep(PAUSE_SECONDS)
            batch = later

    def _add_in_parts(self, entity: FileEntity, file: ExportFile) -> None:
        replaces, gives_up = "", time.monotonic() + PATIENT_SECONDS
        while True:  # from its first part on
            outcome = None
            for part in file.parts(entity):
                given = _replacing(_given(entity, part), replaces)
                outcome = self._one(entity, given, gives_up)
                if outcome.outcome != "part" or outcome.parts != part.number + 1:
                    break
                gives_up = time.monotonic() + PATIENT_SECONDS
            assert outcome is not None
            if outcome.outcome == "differs" and self._replaces and not replaces:
                replaces = outcome.there
            elif outcome.outcome != "part":
                self._settle(entity, outcome)
                return
            elif time.monotonic() > gives_up:
                raise self._given_up(outcome)

    def _one(self, entity: FileEntity, given: GivenEntity, gives_up: float) -> ImportOutcome:
        while True:
            [outcome] = self._asked([(entity, given)])
            if outcome.outcome != "later":
                return outcome
            if time.monotonic() > gives_up:
                raise self._given_up(outcome)
            time.sleep(PAUSE_SECONDS)

    def _settle(self, entity: FileEntity, outcome: ImportOutcome) -> None:
        match outcome.outcome:
            case "put":
                self.put += 1
                return
            case "same":
                self.same += 1
                return
        self._left += 1
        why = "another is there, and --replace was not said" if not self._replaces else "it changes"
        if outcome.outcome != "differs":
            why = f"{outcome.why}. To fix it: {outcome.way_out}"
        if len(self.left) < SHOWN:
            self.left.append((entity, why))

    def _given_up(self, outcome: ImportOutcome) -> TenureError:
        return NoManager(
            f"{self.told(self.put + self.same + self._left)}, and {outcome.key!r} could not be "
            f"imported for {PATIENT_SECONDS:g} s: {outcome.why}. Run the command again: what is "
            "there and the same is passed over"
        )

    # --- asking ---

    def _asked(self, batch: list[tuple[FileEntity, GivenEntity]]) -> list[ImportOutcome]:
        body = ImportBody(kind=self._kind, entities=[given for _, given in batch])
        gives_up = time.monotonic() + PATIENT_SECONDS
        while True:
            try:
                url = self._url or self._leader()
                reply = post(url, path(self._pool, "entities/import"), body, 2 * OVER_SECONDS)
                self._url = url
                return reply.read(ImportAnswer).outcomes
            except NoManager as error:
                if time.monotonic() > gives_up:
                    raise NoManager(
                        f"{error}. {self.put + self.same:,} entities are there; run it again"
                    ) from error
                # A request that was sent may still be carried out, and must not be beside another.
                is_sent = isinstance(error.__cause__, OSError | http.client.HTTPException)
                is_sent = is_sent and not isinstance(error.__cause__, ConnectionRefusedError)
                self._url = ""
            time.sleep(OVER_SECONDS if is_sent else PAUSE_SECONDS)

    def _leader(self) -> str:
        target = path(self._pool, "plan")
        return ask_leader(self._manager, lambda url: get_reply(url, target)).url


def _given(entity: FileEntity, part: EntityPart) -> GivenEntity:
    return GivenEntity(
        key=entity.key,
        digest=entity.digest.hex(),
        lines=part.lines.decode(),
        part=part.number,
        is_last=part.is_last,
    )


def _replacing(given: GivenEntity, there: str) -> GivenEntity:
    return structs.replace(given, replaces=there)
