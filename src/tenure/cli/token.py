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
    help="Make, list and remove the tokens that let others in.",
    help_format="plaintext",
)
FileOption = Annotated[Path, Parameter(help="The file of tokens, as given to `tenure manager`.")]
JsonOption = Annotated[bool, Parameter(negative="", help="Print JSON.")]
COLUMNS = ("id", "role", "pool", "created", "note")


@app.command(help_epilogue=EXAMPLE.format("token new --role owner --pool rooms --file tokens"))
def new(
    *, role: AccessRole, file: FileOption, pool: str = "", note: str = "", json: JsonOption = False
) -> None:
    """Create a token, and print it. Only its hash is stored.

    Running managers read the file again automatically.

    Parameters
    ----------
    role
        owner or lookup, of one pool; viewer, which may read everything; node, of a cluster of the
        store; store, which may read and write rows at nodes; admin, which may do everything.
    pool
        The pool of an owner or a lookup.
    note
        A note for people: who has it.
    """
    token = new_token(role, pool, note)
    TokenFile(file).add(token.entry)
    if json:
        answer = {"token": token.text, **msgspec.to_builtins(token.entry)}
        put(msgspec.json.encode(answer).decode())
        return
    put(token.text)
    remark(f"{file} has its hash; give the text to the process that will use it, in {TOKEN}")


@app.command(name="list", help_epilogue=EXAMPLE.format("token list --file tokens"))
def list_(*, file: FileOption, json: JsonOption = False) -> None:
    """List the valid tokens, without their texts."""
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
    """Remove a token. Clients that are connected with it are disconnected within seconds.

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
    say(f"token {entry.id} ({entry.role}{of}) is no longer valid")
