"""Who gets in at the port of a node of the store that asks for tokens, as SECURITY.md has it."""

from pathlib import Path

import aiohttp
import msgspec
import pytest

from tenure.columns.backends.cluster import STORE_PATH
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.transport.credentials import Credentials
from tenure.wire.versions import SUBPROTOCOLS
from tests.roles_table import ROLES, may_ask
from tests.unit.columns.node.ringed import form_ring, running, settings_of

SWITCHED = 101
ROWS, SHOWN = "WebSocket, for rows and copies", "what it shows of itself, `/metrics`"


@pytest.mark.asyncio
async def test_each_role_gets_in_as_its_row_says_and_no_other(tmp_path: Path) -> None:
    file, shown = tmp_path / "tokens", {"nobody": ""}
    roles = {str(each): (each, "rooms" if each.is_of_a_pool else "") for each in AccessRole}
    for who, (role, pool) in (roles | {"other owner": (AccessRole.OWNER, "carts")}).items():
        made = new_token(role, pool)
        TokenFile(file).add(made.entry)
        shown[who] = made.text
    [node] = [msgspec.structs.replace(each, tokens=file) for each in settings_of(tmp_path, 1)]
    form_ring([node])
    may, may_look = map(may_ask("store node").pop, (ROWS, SHOWN))
    async with running([node], Credentials(token=shown["node"])), aiohttp.ClientSession() as asking:
        assert set(shown) == set(ROLES)
        for who, token in shown.items():
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            url = f"http://127.0.0.1:{node.port}"
            status = await opened(asking, url + STORE_PATH, headers)
            assert status == (SWITCHED if who in may else 401), who
            for path in ("/", "/v1/status", "/metrics", "/healthz"):
                async with asking.get(url + path, headers=headers) as answer:
                    assert answer.status == (200 if who in may_look else 401), (who, path)


async def opened(asking: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> int:
    """The status of the answer to a WebSocket that is opened there."""
    try:
        async with asking.ws_connect(url, headers=headers, protocols=SUBPROTOCOLS):
            return SWITCHED
    except aiohttp.WSServerHandshakeError as error:
        return error.status
