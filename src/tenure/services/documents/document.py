"""A document: named sections, and a version that each update raises.

A version survives moves, because it is part of the state. After a loss no version is used again for
other contents: see `lives`.
"""

from collections.abc import Iterable
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec

from tenure import Alarm, reading
from tenure.errors import ServiceRefusal
from tenure.services.expiring import FORGET, Expiring, ExpiringEntity
from tenure.services.limits import TOO_LARGE, TOO_MANY, ServiceLimit
from tenure.services.lives import new_name

SECTIONS = ServiceLimit(
    "sections", 256, TOO_MANY, "a document is read and kept as a whole: divide a larger one"
)
SECTION_BYTES = ServiceLimit(
    "section_bytes", 256 * 1024, TOO_LARGE, "a reader of a section waits for all of it"
)
DOCUMENT_BYTES = ServiceLimit(
    "document_bytes", 512 * 1024, TOO_LARGE, "a document moves as one, and one key may keep 1 MiB"
)
NAME_BYTES = ServiceLimit(
    "section_name_bytes", 200, TOO_LARGE, "names are kept with the document, so they are short"
)
LIMITS = (SECTIONS, SECTION_BYTES, DOCUMENT_BYTES, NAME_BYTES)
Version: TypeAlias = str
ABSENT: Version = ""
"""The version of a document that does not exist."""
ANY: Version = "*"
"""Any version of a document that exists."""
NO_COPY = "no-cache"
"""What a reader says in Cache-Control that wants to have the owner asked."""


PUBLISH = "publish"
"""The alarm of a document with changes that are not published yet."""
AGAIN_SECONDS = 30.0
"""How long after a change the owner looks whether it was published."""
VALUES_BYTES = 16 * 1024
"""The most bytes of changed sections that a message has: a subscriber reads larger ones itself."""
NAMES_BYTES = 32 * 1024
"""The most bytes of names of sections that a message has: with longer ones it has neither."""
WHOLE = ""
"""The document as a whole, among names of sections: no section is called so."""


class DocumentState(Expiring):
    version: Version = ABSENT
    sections: dict[str, bytes] = msgspec.field(default_factory=dict)
    """The sections as JSON."""
    change: int = 0
    """The number of the last change that is to be published."""
    untold: dict[str, int] = msgspec.field(default_factory=dict)
    """The sections that have changed and are not published yet, with their last changes."""
    all_untold: int = 0
    """The change with which there were too many of them: it counts as one of all sections."""


class UntoldChange(msgspec.Struct):
    """What a document has to publish: all its changes up to a number, as one message."""

    number: int
    id: str
    event: dict[str, Any]


class PublishesChanges(Protocol):
    """Publishes the changes of documents: a `ChangePublisher`."""

    def kick(self, key: str) -> object:
        """Publish what is untold of a document; returns at once."""
        ...


class DocumentFound(msgspec.Struct):
    """A document, as readers get it."""

    version: str
    expires: float
    sections: dict[str, bytes]


class DocumentWritten(msgspec.Struct):
    """The result of an update."""

    version: str
    expires: float
    is_new: bool = False


class Condition(msgspec.Struct, frozen=True):
    """Which version a document must have for an update: one of these, or any, or no document."""

    versions: tuple[Version, ...] = ()
    """Empty if it does not matter; `ANY` for any existing version."""
    must_be_absent: bool = False

    def check(self, there: Version) -> None:
        """Raise ServiceRefusal if the document has another version."""
        matches = not self.versions or there in self.versions or (ANY in self.versions and there)
        if (self.must_be_absent and there) or not matches:
            detail = f"the version there is {there}" if there else "there is no document"
            raise ServiceRefusal(412, "version", detail, version=there)


class Document(ExpiringEntity[DocumentState]):
    """The document of one key."""

    publisher: ClassVar[PublishesChanges | None] = None
    """The publisher of this process; None if changes are not published."""

    @reading
    async def read(self) -> DocumentFound:
        """Read the whole document. Raises ServiceRefusal if there is no document."""
        return self._found()

    @reading
    async def read_at_owner(self) -> DocumentFound:
        """The same as its owner has it, where a loss shows first: for a moment after an owner has
        died without a store, copies may still be read, until the next owner has loaded the key.
        """
        _ = self.lease  # copies have none, so this is never read on one
        return self._found()

    def _found(self) -> DocumentFound:
        self._check_there()
        state = self.state
        return DocumentFound(state.version, state.expires, state.sections)

    async def replace(
        self, sections: dict[str, bytes], condition: Condition, ttl: float
    ) -> DocumentWritten:
        """Replace all sections by these. With a `ttl` of 0 the time to live stays the same."""
        condition.check(self.state.version)
        return self._put(sections, ttl)

    async def put_section(self, name: str, value: bytes, condition: Condition) -> DocumentWritten:
        """Set this section; the others stay."""
        condition.check(self.state.version)
        return self._put({**self.state.sections, name: value})

    async def delete_section(self, name: str, condition: Condition) -> DocumentWritten:
        """Delete this section. Raises ServiceRefusal if it does not exist."""
        self._check_there()
        condition.check(self.state.version)
        sections = dict(self.state.sections)
        if sections.pop(name, None) is None:
            raise no_section(name)
        return self._put(sections)

    async def delete(self, condition: Condition) -> None:
        """Delete the document. Raises ServiceRefusal if there is no document."""
        self._check_there()
        condition.check(self.state.version)
        self._end()

    async def refresh(self, ttl: float) -> DocumentWritten:
        """Keep the document for longer. Raises ServiceRefusal if there is no document."""
        self._check_there()
        self._refresh(ttl or self.state.ttl)
        return DocumentWritten(self.state.version, self.state.expires)

    @reading
    async def untold(self) -> UntoldChange | None:
        """What is to be published, as the document is now."""
        if not self.alarms:  # whatever is untold has one; and only the owner knows, so it is asked:
            return None  # it would have to take a copy back at once, when all is told
        state = self.state
        if not state.untold:
            return None
        event: dict[str, Any] = {"document": str(self.key), "version": state.version}
        if not state.version:
            event["gone_at"] = state.gone_at
        else:
            changed = state.sections if state.all_untold else state.untold
            names = sorted(name for name in changed if name != WHOLE)
            values = {name: state.sections[name] for name in names if name in state.sections}
            fit = len(msgspec.json.encode(names)) <= NAMES_BYTES
            if fit:
                event["sections"] = names
            if fit and sum(map(len, values.values())) <= VALUES_BYTES:
                event["values"] = {name: msgspec.Raw(data) for name, data in values.items()}
        id_ = f"{state.change} {state.version or state.gone_at}"
        return UntoldChange(state.change, id_, _plain(event))

    async def was_told(self, number: int) -> None:
        """The changes up to this one are published."""
        state = self.state
        state.untold = {name: last for name, last in state.untold.items() if last > number}
        if state.all_untold <= number:
            state.all_untold = 0
        if not state.untold:
            self.clear_alarm(PUBLISH)

    def _changed(self, names: Iterable[str]) -> None:
        """Sections have changed in this turn: what is to be published of it is in its commit."""
        if self.publisher is None:
            return
        state = self.state
        state.change += 1
        state.untold |= dict.fromkeys(names, state.change)
        if len(state.untold) > SECTIONS.most:
            state.untold, state.all_untold = {WHOLE: state.change}, state.change
        self.set_alarm(PUBLISH, self.now() + AGAIN_SECONDS)

    def _empty(self) -> DocumentState:
        return DocumentState(change=self.state.change)

    def _end(self) -> None:
        super()._end()
        self._changed([WHOLE])

    async def on_alarm(self, alarm: Alarm) -> None:
        """See `ExpiringEntity`. What is untold is not forgotten."""
        if alarm.name in (PUBLISH, FORGET) and self.state.untold and self.publisher is not None:
            self.set_alarm(alarm.name, self.now() + AGAIN_SECONDS)
            self.publisher.kick(str(self.key))
        elif alarm.name != PUBLISH:
            await super().on_alarm(alarm)

    def _put(self, sections: dict[str, bytes], ttl: float = 0.0) -> DocumentWritten:
        _check_sizes(sections)
        state = self.state
        is_new = not state.version
        before, state.sections = state.sections, sections
        state.version = new_name(self.lease)
        if is_new or ttl:
            self._refresh(ttl or self.usual_ttl)
        names = (*before, *sections)
        self._changed([WHOLE, *(n for n in names if before.get(n) != sections.get(n))])
        return DocumentWritten(state.version, state.expires, is_new)


class PublishedDocument(Document):
    """A document whose changes are published. It has a name of its own, so that a pool takes only
    processes that publish, or only such that do not: what changed at the others would be told to
    nobody, whoever owned the document later.
    """


def no_section(name: str) -> ServiceRefusal:
    """The refusal if the document exists, but not this section."""
    return ServiceRefusal(404, "no_section", f"the document has no section {name!r:.100}")


def _plain(event: dict[str, Any]) -> dict[str, Any]:
    """The event as plain values: calls between processes carry no raw JSON."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(event))
    return plain


def _check_sizes(sections: dict[str, bytes]) -> None:
    SECTIONS.check(len(sections))
    sizes = [len(value) for value in sections.values()]
    for name, size in zip(sections, sizes, strict=True):
        NAME_BYTES.check(len(name.encode()))
        SECTION_BYTES.check(size)
    DOCUMENT_BYTES.check(sum(sizes))
