"""A client of documents: `async with DocumentsClient(urls) as documents`."""

from typing import Any

import msgspec

from tenure.services.client import BlockingService, Reply, ServiceClient, blocking, segment
from tenure.services.documents.document import ABSENT, NO_COPY, DocumentWritten


class ReadDocument(msgspec.Struct):
    """A document that was read."""

    version: str
    expires: float
    sections: dict[str, Any] = {}


_read = msgspec.json.Decoder(ReadDocument).decode
_written = msgspec.json.Decoder(DocumentWritten).decode
AT_OWNER = {"Cache-Control": NO_COPY}


class DocumentsClient(ServiceClient):
    """Reads and writes documents. `if_version` makes an update depend on the present version; ""
    requires that there is no document. If the version differs, ServiceRefusal has the present one
    in `version`.

    Reads are answered by the process that is asked, or by the owner with `at_owner`: whoever was
    told that the document is lost reads it there, since copies of it may go a moment later.
    """

    async def read(
        self, key: str, *, at_owner: bool = False, deadline: float | None = None
    ) -> ReadDocument:
        """Read a whole document."""
        headers = AT_OWNER if at_owner else {}
        return _read((await self.ask("GET", _path(key), headers=headers, deadline=deadline)).data)

    async def read_section(
        self, key: str, section: str, *, at_owner: bool = False, deadline: float | None = None
    ) -> Any:  # noqa: ANN401  # whatever JSON has
        """Read a section's value."""
        headers = AT_OWNER if at_owner else {}
        reply = await self.ask("GET", _path(key, section), headers=headers, deadline=deadline)
        return msgspec.json.decode(reply.data)

    async def write(
        self,
        key: str,
        sections: dict[str, Any],
        *,
        if_version: str | None = None,
        ttl: float = 0.0,
        deadline: float | None = None,
    ) -> DocumentWritten:
        """Write a document that has exactly these sections."""
        body = {"sections": sections, "ttl": ttl}
        return await self._update("PUT", _path(key), body, if_version, deadline)

    async def write_section(
        self,
        key: str,
        section: str,
        value: Any,  # noqa: ANN401  # whatever JSON has
        *,
        if_version: str | None = None,
        deadline: float | None = None,
    ) -> DocumentWritten:
        """Write this section; the others stay."""
        path = _path(key, section)
        data = msgspec.Raw(msgspec.json.encode(value))
        return await self._update("PUT", path, data, if_version, deadline)

    async def delete(
        self, key: str, *, if_version: str | None = None, deadline: float | None = None
    ) -> None:
        """Delete a document."""
        await self._ask("DELETE", _path(key), None, if_version, deadline)

    async def delete_section(
        self,
        key: str,
        section: str,
        *,
        if_version: str | None = None,
        deadline: float | None = None,
    ) -> DocumentWritten:
        """Delete this section; the others stay."""
        return await self._update("DELETE", _path(key, section), None, if_version, deadline)

    async def refresh(
        self, key: str, *, ttl: float = 0.0, deadline: float | None = None
    ) -> DocumentWritten:
        """Keep a document for longer."""
        path = _path(key) + "/refresh"
        return _written((await self.ask("POST", path, {"ttl": ttl}, deadline=deadline)).data)

    async def _update(
        self, method: str, path: str, body: object, if_version: str | None, deadline: float | None
    ) -> DocumentWritten:
        return _written((await self._ask(method, path, body, if_version, deadline)).data)

    async def _ask(
        self, method: str, path: str, body: object, if_version: str | None, deadline: float | None
    ) -> Reply:
        headers = {}
        if if_version == ABSENT:
            headers["If-None-Match"] = "*"
        elif if_version is not None:
            headers["If-Match"] = f'"{if_version}"'
        return await self.ask(method, path, body, headers=headers, deadline=deadline)


class BlockingDocuments(BlockingService[DocumentsClient]):
    """The same for programs without an event loop."""

    read = blocking(DocumentsClient.read)
    read_section = blocking(DocumentsClient.read_section)
    write = blocking(DocumentsClient.write)
    write_section = blocking(DocumentsClient.write_section)
    delete_section = blocking(DocumentsClient.delete_section)
    delete = blocking(DocumentsClient.delete)
    refresh = blocking(DocumentsClient.refresh)


def _path(key: str, section: str | None = None) -> str:
    path = f"/documents/{segment(key)}"
    return path if section is None else f"{path}/sections/{segment(section)}"
