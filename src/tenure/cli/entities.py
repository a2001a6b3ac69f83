"""`tenure entities`: looking into entities, key by key, while their owners serve them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from tenure.cli import entities_files
from tenure.cli.asking import ASKING, AskingOptions, PoolName, ask, path
from tenure.cli.keys import TEXT, KeyForm, KeyText
from tenure.cli.output import EXAMPLE, counted, put, remark, say, show
from tenure.manager.entity_answers import KeysPage, ShownEntity

app = App(
    name="entities",
    help="List the keys of entities, show what is kept of one, export and import them.",
    help_format="plaintext",
)
app.command(
    entities_files.export,
    name="export",
    help_epilogue=EXAMPLE.format("entities export rooms rooms.jsonl"),
)
app.command(
    entities_files.import_,
    name="import",
    help_epilogue=EXAMPLE.format("entities import rooms rooms.jsonl"),
)
After = Annotated[str | None, Parameter(help="Where the page before has ended, as it told.")]


@app.command(name="list", help_epilogue=EXAMPLE.format("entities list rooms --prefix room-4"))
def list_(
    pool: PoolName,
    /,
    *,
    prefix: str = "",
    after: After = None,
    most: int = 1000,
    how: AskingOptions = ASKING,
) -> None:
    """List the keys that have stored state, one page at a time.

    Parameters
    ----------
    prefix
        Only keys that begin so.
    most
        How many keys to list, up to 1000.
    """
    parameters = {"prefix": prefix, "most": str(most)} | ({} if after is None else {"after": after})
    reply = ask(how.manager, path(pool, "entities", **parameters))
    if how.json:
        put(reply.text)
        return
    found = reply.read(KeysPage)
    show(
        ("key", "form"),
        ((each.key, each.form) for each in found.keys),
        empty="there are no such keys" if found.next is None else "none of the keys looked at",
        can_go=("form",),
    )
    if found.unowned:
        remark(f"{counted(found.unowned, 'range')} without an owner was passed over")
    if found.next is not None:
        remark(f"there may be more: --after {found.next}")


@app.command(name="show", help_epilogue=EXAMPLE.format("entities show rooms room-42"))
def show_(
    pool: PoolName,
    key: KeyText,
    /,
    *,
    form: KeyForm = TEXT,
    collection: str = "",
    after: After = None,
    most: int = 50,
    how: AskingOptions = ASKING,
) -> None:
    """Show one entity: its state, alarms, sockets and collections, its owner and its lease.

    Nothing of its class runs: an entity that sleeps goes on sleeping. With a token of the role
    viewer, what is kept is left out, unless managers run with --viewers-see-contents.

    Parameters
    ----------
    collection
        Show a page of this collection.
    most
        How many items to show, up to 100.
    """
    parameters = form.parameters(key) | {"collection": collection, "most": str(most)}
    if after is not None:
        parameters["after"] = after
    reply = ask(how.manager, path(pool, "entity", **parameters))
    if how.json:
        put(reply.text)
        return
    found = reply.read(ShownEntity)
    for line in _items(found) if collection else _in_words(found):
        say(line)
    if found.next is not None:
        remark(f"there are more items: --after {found.next}")


def _in_words(found: ShownEntity) -> Iterator[str]:
    is_there = "awake" if found.awake else "asleep"
    yield f"{found.key.key}: {is_there if found.kept else 'nothing is kept of it'}"
    yield f"owner: {found.owner} at {found.address}, lease number {found.number}"
    if found.turn or found.waiting:
        turn = found.turn or "a call"
        yield f"turn: {turn} runs, {counted(found.waiting, 'call')} waiting"
    if found.state_bytes:
        version = f", of version {found.version}" if found.version > 1 else ""
        yield f"state: {counted(found.state_bytes, 'byte')}{version}"
        if found.contents:
            yield f"  {_json(found.state)}"
    if found.answers:
        yield f"answers of calls: {found.answers}"
    if found.alarms_set:
        yield f"alarms: {found.alarms_set}"
    for alarm in found.alarms:
        tried = f", tried {counted(alarm.attempts, 'time')}" if alarm.attempts else ""
        yield f"  {alarm.name} at {_time(alarm.next_at)}{tried}"
    if found.sockets_open:
        yield f"sockets: {found.sockets_open}"
    for socket in found.sockets:
        yield f"  {socket.id} at {socket.edge}, {counted(socket.unread, 'frame')} unread"
    for each in found.collections:
        more = " or more" if each.has_more else ""
        yield f"{each.name}: {counted(each.items, 'item')}{more}"
    if not found.contents:
        yield "what is kept is not shown to this token: use one of the role admin"


def _items(found: ShownEntity) -> Iterator[str]:
    for each in found.items:
        added = "" if each.added is None else f", {_time(each.added)}"
        yield f"{each.at}{added}: {_json(each.value)}"
    if not found.items:
        yield "no items"


def _json(value: Any) -> str:  # noqa: ANN401  # of any form
    return msgspec.json.encode(value).decode()


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, OSError, ValueError):
        return f"{seconds} s"
