"""The table in SECURITY.md of what each role may ask at each port, for tests of the servers."""

from pathlib import Path

TEXT = Path(__file__).resolve().parents[1] / "SECURITY.md"
HEAD = "| port | request | nobody |"
ROLES = ("nobody", "viewer", "lookup", "owner", "other owner", "node", "store", "admin")
"""Who asks: the bearer of a token of each role, of the pool where a role is in one; an owner of
another pool; and whoever shows no token that counts.
"""


def may_ask(port: str) -> dict[str, set[str]]:
    """Who may make each request at a port."""
    table = TEXT.read_text("utf-8")
    table = table[table.index(HEAD) :].partition("\n\n")[0]
    head, _, *rows = ([each.strip() for each in row.split("|")[1:-1]] for row in table.splitlines())
    assert tuple(head[2:]) == ROLES, head
    found = {}
    for where, request, *said in rows:
        assert set(said) <= {"yes", ""}, (request, said)
        if where == port:
            found[request] = {who for who, may in zip(ROLES, said, strict=True) if may}
    return found
