"""Documents over HTTP: the version is the ETag, and updates may depend on it."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated, Any, ClassVar

import msgspec

from tenure.errors import ConfigurationError, PoolError, ServiceRefusal
from tenure.services.client import ID_HEADER
from tenure.services.documents.document import (
    ANY,
    LIMITS,
    NO_COPY,
    Condition,
    Document,
    DocumentFound,
    DocumentWritten,
    PublishedDocument,
    no_section,
)
from tenure.services.documents.publisher import ChangePublisher, change_topics
from tenure.services.expiring import of_this_process
from tenure.services.limits import OF_ENTITIES, OF_PARTS, ServiceLimit, ShortText
from tenure.services.operations import BoundHandler, ServiceAnswer, ServiceRequest, operation
from tenure.services.service import MakePort, Service, ServiceSettings, TimeToLive, Ttl

DOCUMENT = "/documents/{key}"
SECTION = "/documents/{key}/sections/{section}"
TAGS = re.compile(r'"([\w.-]+)"(?:\s*,\s*"([\w.-]+)")*')
VERSIONS = r'^(\*|"[0-9a-z.]+")$'
CONDITIONS: Mapping[str, str | tuple[str, str]] = {
    "If-Match": ('Do it only if this version is there: "17.3.5f", or * for any', VERSIONS),
    "If-None-Match": ("* to do it only if there is no document", r"^\*$"),
    ID_HEADER: "Names this request, so that a repeat changes nothing and gets the first answer",
}
CHANGES = ("PUT", "DELETE")
"""The methods that change a document; a refresh changes only how long it is kept."""
SETTLE_SECONDS = 2.0
READ_HEADERS = {
    "If-None-Match": "Answer 304 if this version is still there",
    "Cache-Control": "With no-cache the owner is asked: read so after you were told of a loss",
}


class DocumentBody(msgspec.Struct, forbid_unknown_fields=True):
    """A whole document, to be written."""

    sections: Annotated[
        dict[Annotated[ShortText, msgspec.Meta(min_length=1)], msgspec.Raw], OF_PARTS
    ]
    ttl: Ttl = 0.0
    """Seconds; 0 for the default, or to leave the time of an existing document."""


class DocumentShown(msgspec.Struct):
    """A document, as it is read."""

    version: str
    expires: float
    """When it expires, in seconds since 1970, unless it is refreshed."""
    sections: dict[str, msgspec.Raw]


class Documents(Service[Document]):
    """See the module."""

    name: ClassVar[str] = "documents"
    port: ClassVar[int] = 8101
    entity = Document
    limits: ClassVar[tuple[ServiceLimit, ...]] = (*LIMITS, *OF_ENTITIES)
    takes: ClassVar[frozenset[str]] = frozenset(
        {"store", "publish_to", "publish_token", "reads", "stale_after"}
    )

    def __init__(
        self,
        settings: ServiceSettings,
        **of_entities: Any,  # noqa: ANN401  # see Entities
    ) -> None:
        self.publisher = ChangePublisher() if settings.publish_to else None
        if settings.publish_token is not None and self.publisher is None:
            raise ConfigurationError(
                "--publish-token is shown to pubsub: say with --publish-to where that is"
            )
        reads, stale_after = settings.reads or "everywhere", settings.stale_after
        super().__init__(settings, reads=reads, stale_after=stale_after, **of_entities)
        if self.publisher is not None:
            self.publisher.documents = self.entities

    def entity_type(self) -> type[Document]:
        """The class of its entities, which knows how long documents are kept here."""
        kind = Document if self.publisher is None else PublishedDocument
        return of_this_process(kind, usual_ttl=self.settings.ttl, publisher=self.publisher)

    @asynccontextmanager
    async def running(self, make_port: MakePort) -> AsyncIterator[None]:
        """See `Service`. What is not published when it ends goes with the documents."""
        settings, publisher = self.settings, self.publisher
        async with AsyncExitStack() as stack:
            if publisher is not None:
                topics = change_topics(settings.publish_to, settings.publish_token)
                publisher.topics = await stack.enter_async_context(topics)
            try:
                await stack.enter_async_context(super().running(make_port))
            except PoolError as error:
                if PublishedDocument.__name__ not in str(error):
                    raise
                raise PoolError(
                    f"the pool {settings.pool!r} has processes of documents that publish changes, "
                    "and others that do not, whose changes would be told to nobody: start all with "
                    "--publish-to, or none. To change that, stop all of them first"
                ) from error
            if publisher is not None:
                stack.push_async_callback(publisher.close)
            yield

    async def carried_out(self, handler: BoundHandler, asked: ServiceRequest) -> ServiceAnswer:
        """Publish what was changed. Without a store a killed process takes it along, so the answer
        waits for that, for a moment.
        """
        answer = await super().carried_out(handler, asked)
        if self.publisher is not None and asked.request.method in CHANGES and asked.key:
            if self.settings.store is None:
                await self.publisher.settle(asked.key, SETTLE_SECONDS)
            else:
                self.publisher.kick(asked.key)
        return answer

    @operation(
        "GET",
        DOCUMENT,
        "Read a document",
        {200: DocumentShown, 304: None},
        headers=READ_HEADERS,
        refusals=(404, 410),
    )
    async def read(self, asked: ServiceRequest) -> ServiceAnswer:
        """All sections, as this process knows them: never older than an answer sent before."""
        found = await self._found(asked)
        tag = {"ETag": f'"{found.version}"'}
        if found.version in versions_in(asked.headers, "If-None-Match"):
            return ServiceAnswer(304, None, tag)
        sections = {name: msgspec.Raw(value) for name, value in found.sections.items()}
        return ServiceAnswer(200, DocumentShown(found.version, found.expires, sections), tag)

    async def _found(self, asked: ServiceRequest) -> DocumentFound:
        document = self.entities[asked.key]
        said = asked.headers.get("Cache-Control", "").lower().split(",")
        at_owner = NO_COPY in map(str.strip, said)
        return await (document.read_at_owner() if at_owner else document.read())

    @operation(
        "PUT",
        DOCUMENT,
        "Write a document",
        {200: DocumentWritten, 201: DocumentWritten},
        body=DocumentBody,
        headers=CONDITIONS,
        refusals=(412,),
    )
    async def write(self, asked: ServiceRequest) -> ServiceAnswer:
        """Exactly these sections."""
        body: DocumentBody = asked.body
        call = self.repeatable(asked)
        ttl = self.checked_ttl(body.ttl, usual=0.0)
        sections = {name: bytes(value) for name, value in body.sections.items()}
        return _written(await call.replace(sections, condition_of(asked.headers), ttl))

    @operation(
        "DELETE",
        DOCUMENT,
        "Delete a document",
        {204: None},
        headers=CONDITIONS,
        refusals=(404, 410, 412),
    )
    async def delete(self, asked: ServiceRequest) -> ServiceAnswer:
        """Delete the document. For a day, answers tell when it went."""
        await self.repeatable(asked).delete(condition_of(asked.headers))
        return ServiceAnswer(204)

    @operation(
        "POST",
        DOCUMENT + "/refresh",
        "Keep a document for longer",
        {200: DocumentWritten},
        body=TimeToLive,
        refusals=(404, 410),
        is_optional=True,
    )
    async def refresh(self, asked: ServiceRequest) -> ServiceAnswer:
        """Keep the document for its whole time from now on."""
        ttl = 0.0 if asked.body is None else self.checked_ttl(asked.body.ttl, usual=0.0)
        return _written(await self.entities[asked.key].refresh(ttl))

    @operation(
        "GET",
        SECTION,
        "Read a section",
        {200: Any, 304: None},
        headers=READ_HEADERS,
        refusals=(404, 410),
    )
    async def read_section(self, asked: ServiceRequest) -> ServiceAnswer:
        """The value alone; the ETag is the document's."""
        found = await self._found(asked)
        value = found.sections.get(asked.path["section"])
        if value is None:
            raise no_section(asked.path["section"])
        tag = {"ETag": f'"{found.version}"'}
        if found.version in versions_in(asked.headers, "If-None-Match"):
            return ServiceAnswer(304, None, tag)
        return ServiceAnswer(200, value, tag)

    @operation(
        "PUT",
        SECTION,
        "Write a section",
        {200: DocumentWritten, 201: DocumentWritten},
        body=msgspec.Raw,
        headers=CONDITIONS,
        refusals=(412,),
    )
    async def write_section(self, asked: ServiceRequest) -> ServiceAnswer:
        """The others stay."""
        call, condition = self.repeatable(asked), condition_of(asked.headers)
        name = asked.path["section"]
        return _written(await call.put_section(name, bytes(asked.body), condition))

    @operation(
        "DELETE",
        SECTION,
        "Delete a section",
        {200: DocumentWritten},
        headers=CONDITIONS,
        refusals=(404, 410, 412),
    )
    async def delete_section(self, asked: ServiceRequest) -> ServiceAnswer:
        """The others stay."""
        call, condition = self.repeatable(asked), condition_of(asked.headers)
        return _written(await call.delete_section(asked.path["section"], condition))


def condition_of(headers: Mapping[str, str]) -> Condition:
    """The condition in `If-Match` and `If-None-Match`. Raises ServiceRefusal if they have something
    other than versions.
    """
    wanted = versions_in(headers, "If-Match")
    unwanted = versions_in(headers, "If-None-Match")
    if unwanted not in ((), (ANY,)):
        raise ServiceRefusal(400, "condition", "If-None-Match must be * in a request that writes")
    return Condition(wanted, bool(unwanted))


def versions_in(headers: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The versions in a header. Raises ServiceRefusal if one is not a version."""
    given = headers.get(name)
    if given is None:
        return ()
    if given.strip() == "*":
        return (ANY,)
    if not TAGS.fullmatch(given.strip()):
        raise ServiceRefusal(
            400, "condition", f'{name} is {given!r:.100}, and a version is written like "17.3.5f"'
        )
    return tuple(re.findall(r'"([\w.-]+)"', given))


def _written(found: DocumentWritten) -> ServiceAnswer:
    return ServiceAnswer(201 if found.is_new else 200, found, {"ETag": f'"{found.version}"'})
