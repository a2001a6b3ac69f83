"""A pool has the entities of one class: the second class that comes is refused."""

import pytest

from tenure import ConfigurationError, Entities, Entity, PoolError
from tests.unit.entities.stage import Count, Counter, on_stage


class Ledger(Entity[Count]):
    async def add(self) -> int:
        self.state.value += 10
        return self.state.value


class Tally(Ledger, name="Counter"):
    """The class had another name in the release before."""


@pytest.mark.asyncio
async def test_a_second_class_is_refused_when_it_enters() -> None:
    async with on_stage(1) as stage:
        (counters,) = stage.members
        with pytest.raises(PoolError, match=r"class 'Counter'.* has 'Ledger': give each class a p"):
            await stage.enter(kind=Ledger)
        assert await stage.done(counters["a"].add()) == 1
        another = await stage.enter()
        assert await stage.done(another["a"].add()) == 2


@pytest.mark.asyncio
async def test_so_it_is_by_the_next_leader_and_not_when_the_first_class_has_left() -> None:
    async with on_stage(1) as stage:
        stage.cluster.start_manager(stage.cluster.kill_manager())
        with pytest.raises(PoolError, match="give each class a pool of its own"):
            await stage.enter(kind=Ledger)
        await stage.leave(stage.members[0])
        ledgers = await stage.enter(kind=Ledger)
        assert await stage.done(ledgers["a"].add()) == 10


@pytest.mark.asyncio
async def test_a_class_that_has_a_new_name_says_its_old_one() -> None:
    async with on_stage(1) as stage:
        (counters,) = stage.members
        assert await stage.done(counters["a"].add()) == 1
        renamed = await stage.enter(kind=Tally, labels={"zone": "b"})
        await stage.move("a", renamed)
        assert await stage.done(counters["a"].add()) == 11


@pytest.mark.parametrize("name", ["", 7, "a\0b"])
def test_a_name_is_a_text(name: object) -> None:
    class Odd(Counter, name=name):  # type: ignore[arg-type]
        pass

    with pytest.raises(ConfigurationError, match="the name of Odd is a text"):
        Entities(Odd, "counters", "http://m")
