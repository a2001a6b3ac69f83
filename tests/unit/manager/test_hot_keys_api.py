"""The hottest keys: by name, from owners' checks to the answer, and who may not be told."""

from pathlib import Path
from typing import Any

import pytest

from tenure import Credentials, Owner
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tests.patience import until
from tests.unit.manager.serving import Serving, serving

pytestmark = pytest.mark.asyncio
PATH = "/v1/pools/rooms/hottest"


async def hottest(manager: Serving, owner: Owner, token: str) -> list[dict[str, Any]]:
    """The answer, as soon as the owner has reported that one key is asked for."""

    async def found() -> list[dict[str, Any]]:
        for _ in range(1000):
            owner.check("attic")
        status, answer = await manager.get(PATH, Authorization=f"Bearer {token}")
        assert status == 200, answer
        return list(answer["keys"])

    return await until(found)


@pytest.mark.parametrize("hides", [False, True])
async def test_the_hottest_keys_are_named_to_those_who_may_know_them(
    tmp_path: Path, *, hides: bool
) -> None:
    tokens = TokenFile(tmp_path / "tokens")
    admin, viewer = new_token(AccessRole.ADMIN), new_token(AccessRole.VIEWER)
    for each in (admin, viewer):
        tokens.add(each.entry)
    async with (
        serving(tokens=tokens.path, hide_hot_keys=hides) as manager,
        Owner(
            manager.service.url,
            pool="rooms",
            address="http://127.0.0.1/ann",
            name="ann",
            credentials=Credentials(token=admin.text),
        ) as owner,
    ):
        await owner.ready()
        [known] = await hottest(manager, owner, admin.text)
        assert (known["name"], known["owner"]) == ("attic", "ann")
        assert known["key"]["hex"] == owner.key("attic").hex()
        assert known["rate"] > 1
        [shown] = await hottest(manager, owner, viewer.text)
        assert shown["owner"] == "ann"
        assert (shown["name"], shown["key"]) == ((None, None) if hides else ("attic", known["key"]))


async def test_of_a_pool_that_does_not_exist_nothing_is_hot() -> None:
    async with serving() as manager:
        assert (await manager.get(PATH))[0] == 404
