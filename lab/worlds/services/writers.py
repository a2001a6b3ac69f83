"""The users of documents, who read, and write whole documents and sections, on conditions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from lab.worlds.services.document_history import ABSENT, SECTIONS, AskedAt, DocumentChange
from tenure.errors import ServiceRefusal, TenureError, ValueTypeError
from tenure.services.documents.document import ANY, Condition

TTL = 1e6
ATTEMPTS = 3
CONFLICT = 412
NOT_THERE = (404, 410)


class Update(NamedTuple):
    """An update that is tried."""

    key: str
    change: DocumentChange
    number: int
    condition: str | None
    """The version that has to be there; `ABSENT` for none, `ANY` for any, None for whatever is."""
    asked: AskedAt
    id: str

    @property
    def as_asked(self) -> Condition:
        """The condition as the service takes it."""
        if self.condition is None:
            return Condition()
        return Condition((self.condition,)) if self.condition else Condition(must_be_absent=True)


class DocumentUsers:
    """The users in one process."""

    def __init__(self, process: Any, new_name: Callable[[], str]) -> None:
        self._process = process
        self._site = process.site
        self._random = process.random
        self._new_name = new_name
        self._former: dict[str, str] = {}

    async def use(self) -> None:
        """Read one, and write it now and then."""
        key = self._random.choice(self._site.documents)
        try:
            there = await self.read(key)
            if self._random.random() < 0.8:
                await self._write(self._update(key, there))
        except ValueTypeError:
            raise
        except TenureError as error:
            self._site.count(f"document: {getattr(error, 'error', type(error).__name__)}")

    async def read(self, key: str) -> str:
        """The version that is there."""
        history = self._site.histories[key]
        asked = history.ask(self._site.now)
        try:
            shown = await self._process.documents[key].read()
        except ServiceRefusal as error:
            if error.status not in NOT_THERE:
                raise
            history.absent(asked, self._site.now)
            return ABSENT
        sections = {
            name: msgspec.json.decode(value, type=str) for name, value in shown.sections.items()
        }
        history.read(asked, shown.version, sections)
        return str(shown.version)

    def _update(self, key: str, there: str) -> Update:
        draw, name = self._random.random(), self._new_name()
        condition: str | None = there
        if draw < 0.1 and there:
            condition = self._former.get(key, there)  # which is refused, if it is an earlier one
        elif draw < 0.3 and there:
            condition = ANY
        elif draw < 0.4:
            condition = None
        self._former[key] = there
        change = DocumentChange(dict.fromkeys(SECTIONS, name), is_whole=True)
        if there and condition is not None and self._random.random() < 0.6:
            gone = self._random.random() < 0.2
            change = DocumentChange(
                {self._random.choice(SECTIONS): None if gone else name}, is_whole=False
            )
        history = self._site.histories[key]
        asked = history.ask(self._site.now)
        return Update(key, change, history.begin(change), condition, asked, name)

    async def _write(self, update: Update) -> None:
        """Try it, until it is answered or has been tried often enough."""
        history = self._site.histories[update.key]
        for attempt in range(ATTEMPTS):
            try:
                written = await self._attempt(update)
            except ServiceRefusal as error:
                self._site.count(f"document: {error.error}")
                if not attempt:
                    self._refused(update, error)
                return
            except ValueTypeError:
                raise
            except TenureError as error:  # it may have been done: the same id is asked again
                self._site.count(f"document: {type(error).__name__}")
                history.tried_again(update.number)
                continue
            condition = None if update.condition == ANY else update.condition
            history.written(update.asked, condition, update.number, written.version, self._site.now)
            self._site.count("written" if update.change.is_whole else "sections written")
            return

    def _refused(self, update: Update, error: ServiceRefusal) -> None:
        history, condition = self._site.histories[update.key], update.condition
        if error.status != CONFLICT or condition is None:
            history.not_made(update.number)
        else:
            history.refused(update.asked, condition, error.version, update.number, self._site.now)

    async def _attempt(self, update: Update) -> Any:
        call = self._process.documents.once(update.id)[update.key]
        condition, values = update.as_asked, update.change.values
        if update.change.is_whole:
            sections = {name: msgspec.json.encode(value) for name, value in values.items()}
            return await call.replace(sections, condition, TTL)
        ((name, value),) = values.items()
        if value is None:
            return await call.delete_section(name, condition)
        return await call.put_section(name, msgspec.json.encode(value), condition)
