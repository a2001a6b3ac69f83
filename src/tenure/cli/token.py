"""`tenure token`: the file of tokens that a manager is started with."""

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from tenure.cli.output import EXAMPLE, put, remark, say, show
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.transport.credentials import TOKEN

app = App(
    name="token",
    help="Make the tokens with which others are let in, list and remove them.",
    help_format="plaintext",
)
FileOption = Annotated[Path, Parameter(help="The file of tokens, as `tenure manager` has it.")]
JsonOption = Annotated[bool, Parameter(negative="", help="Print JSON.")]
COLUMNS = ("id", "role", "pool", "created", "note")


@app.command(help_epilogue=EXAMPLE.format("token new --role owner --pool rooms --file tokens"))
def new(
    *, role: AccessRole, file: FileOption, pool: str = "", note: str = "", json: JsonOption = False
) -> None:
    """Make a token, and print it. It is nowhere else: the file has a hash of it.

    Managers that run read the file again by themselves.

    Parameters
    ----------
    role
        owner or lookup, of one pool; viewer, who reads everything; node, of a cluster of the
        store; store, who reads and writes rows at nodes; admin, who may do everything.
    pool
        The pool of an owner or a lookup.
    note
        For people: who has it.
    """
    token = new_token(role, pool, note)
    TokenFile(file).add(token.entry)
    if json:
        answer = {"token": token.text, **msgspec.to_builtins(token.entry)}
        put(msgspec.json.encode(answer).decode())
        return
    put(token.text)
    remark(f"{file} has its hash; give the text to who is to use it, in {TOKEN}")


@app.command(name="list", help_epilogue=EXAMPLE.format("token list --file tokens"))
def list_(*, file: FileOption, json: JsonOption = False) -> None:
    """List the tokens that count, without their texts."""
    tokens = TokenFile(file)
    tokens.load()
    if json:
        put(msgspec.json.encode(tokens.entries).decode())
        return
    show(
        COLUMNS,
        [(each.id, each.role, each.pool, each.created, each.note) for each in tokens.entries],
        empty=f"{file} has no tokens",
    )


@app.command(help_epilogue=EXAMPLE.format("token remove 4f0c9a21 --file tokens"))
def remove(token_id: str, /, *, file: FileOption, json: JsonOption = False) -> None:
    """Take a token out. Who is connected with it is disconnected within seconds.

    Parameters
    ----------
    token_id
        Its id, which `tenure token list` shows.
    """
    entry = TokenFile(file).remove(token_id)
    if json:
        put(msgspec.json.encode(entry).decode())
        return
    of = f" of {entry.pool}" if entry.pool else ""
    say(f"token {entry.id} ({entry.role}{of}) counts no more")
