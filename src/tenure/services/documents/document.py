"""A document: named sections, and a version that each update raises.

A version survives moves, because it is state. After a loss no version comes again for other
contents: see `lives`.
"""

from typing import TypeAlias

import msgspec

from tenure import reading
from tenure.errors import ServiceRefusal
from tenure.services.expiring import Expiring, ExpiringEntity
from tenure.services.limits import TOO_LARGE, TOO_MANY, ServiceLimit
from tenure.services.lives import new_name

SECTIONS = ServiceLimit(
    "sections", 256, TOO_MANY, "a document is read and kept as a whole: more belong under more keys"
)
SECTION_BYTES = ServiceLimit(
    "section_bytes", 256 * 1024, TOO_LARGE, "whoever reads a section waits for all of it"
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
"""The version of what is not there."""
ANY: Version = "*"
"""Any version of what is there."""


class DocumentState(Expiring):
    """What is kept of one."""

    version: Version = ABSENT
    sections: dict[str, bytes] = msgspec.field(default_factory=dict)
    """As JSON."""


class DocumentFound(msgspec.Struct):
    """A document, as it is read."""

    version: str
    expires: float
    sections: dict[str, bytes]


class DocumentWritten(msgspec.Struct):
    """What an update came to."""

    version: str
    expires: float
    is_new: bool = False


class Condition(msgspec.Struct, frozen=True):
    """Which version has to be there for an update: one of these, or any, or none."""

    versions: tuple[Version, ...] = ()
    """Empty where it does not matter; `ANY` for any that is there."""
    must_be_absent: bool = False

    def check(self, there: Version) -> None:
        """Raise ServiceRefusal where another version is there."""
        matches = not self.versions or there in self.versions or (ANY in self.versions and there)
        if (self.must_be_absent and there) or not matches:
            detail = f"the version there is {there}" if there else "there is no document"
            raise ServiceRefusal(412, "version", detail, version=there)


class Document(ExpiringEntity[DocumentState]):
    """One key's."""

    @reading
    async def read(self) -> DocumentFound:
        """All of it. Raises ServiceRefusal where there is none."""
        self._check_there()
        state = self.state
        return DocumentFound(state.version, state.expires, state.sections)

    async def replace(
        self, sections: dict[str, bytes], condition: Condition, ttl: float
    ) -> DocumentWritten:
        """Have exactly these sections. `ttl` is 0 to leave the time to live as it is."""
        condition.check(self.state.version)
        return self._put(sections, ttl)

    async def put_section(self, name: str, value: bytes, condition: Condition) -> DocumentWritten:
        """Have this section, and the others as they are."""
        condition.check(self.state.version)
        return self._put({**self.state.sections, name: value})

    async def delete_section(self, name: str, condition: Condition) -> DocumentWritten:
        """Have this section no more. Raises ServiceRefusal where it is not there."""
        self._check_there()
        condition.check(self.state.version)
        sections = dict(self.state.sections)
        if sections.pop(name, None) is None:
            raise no_section(name)
        return self._put(sections)

    async def delete(self, condition: Condition) -> None:
        """Delete it. Raises ServiceRefusal where there is none."""
        self._check_there()
        condition.check(self.state.version)
        self._end()

    async def refresh(self, ttl: float) -> DocumentWritten:
        """Keep it for longer. Raises ServiceRefusal where there is none."""
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
    """There is a document, and not this section."""
    return ServiceRefusal(404, "no_section", f"the document has no section {name!r:.100}")


def _check_sizes(sections: dict[str, bytes]) -> None:
    SECTIONS.check(len(sections))
    sizes = [len(value) for value in sections.values()]
    for name, size in zip(sections, sizes, strict=True):
        NAME_BYTES.check(len(name.encode()))
        SECTION_BYTES.check(size)
    DOCUMENT_BYTES.check(sum(sizes))
