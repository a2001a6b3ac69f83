"""What the adapters record as load, by which keys are divided among owners."""

import pytest

from tests.unit.member.test_relay import Shop, asking, key_of, stage


@pytest.mark.asyncio
async def test_a_request_is_load_at_the_owner_of_its_key_alone() -> None:
    async with stage() as it:
        first, _ = await it.member(Shop("first"))
        second, relay = await it.member(Shop("second"))
        key = await key_of(first, second)
        async with asking(relay) as client:
            for _ in range(3):
                await client.get(f"/carts/{key}")
        assert sum(first.owner._board.current.given) == 3
        assert sum(second.owner._board.current.given) == 0
