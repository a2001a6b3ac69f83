"""A document: named sections, and a version that each update raises.

A version survives moves, because it is part of the state. After a loss no version is used again for
other contents: see `lives`.
"""

from typing import TypeAlias

import msgspec

from tenure import reading
from tenure.errors import ServiceRefusal
from tenure.services.expiring import Expiring, ExpiringEntity
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


class DocumentState(Expiring):
    version: Version = ABSENT
    sections: dict[str, bytes] = msgspec.field(default_factory=dict)
    """The sections as JSON."""


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

    @reading
    async def read(self) -> DocumentFound:
        """Read the whole document. Raises ServiceRefusal if there is no document."""
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

    def _put(self, sections: dict[str, bytes], ttl: float = 0.0) -> DocumentWritten:
        _check_sizes(sections)
        state = self.state
        is_new = not state.version
        state.sections = sections
        state.version = new_name(self.lease)
        if is_new or ttl:
            self._refresh(ttl or self.usual_ttl)
        return DocumentWritten(state.version, state.expires, is_new)


def no_section(name: str) -> ServiceRefusal:
    """The refusal if the document exists, but not this section."""
    return ServiceRefusal(404, "no_section", f"the document has no section {name!r:.100}")


def _check_sizes(sections: dict[str, bytes]) -> None:
    SECTIONS.check(len(sections))
    sizes = [len(value) for value in sections.values()]
    for name, size in zip(sections, sizes, strict=True):
        NAME_BYTES.check(len(name.encode()))
        SECTION_BYTES.check(size)
    DOCUMENT_BYTES.check(sum(sizes))
