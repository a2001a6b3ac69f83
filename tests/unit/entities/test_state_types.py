"""State may be a Struct, a dataclass, an attrs class or a Pydantic model."""

import gc
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import attrs
import pydantic
import pytest

from tenure import ConfigurationError, Entities, Entity, UsageError, ValueTypeError, reading
from tests.unit.entities.stage import Counter, on_stage

pytestmark = pytest.mark.asyncio
WHEN = datetime(2026, 5, 1, 12, tzinfo=UTC)
WHO = UUID(int=7)


@dataclass
class DataClassed:
    value: int = 0
    log: list[str] = field(default_factory=list)
    at: datetime | None = None
    who: UUID | None = None


@attrs.define
class Attred:
    value: int = 0
    log: list[str] = attrs.field(factory=list)
    at: datetime | None = None
    who: UUID | None = None


class Modelled(pydantic.BaseModel):
    value: int = pydantic.Field(0, alias="v")
    log: list[str] = []
    at: datetime | None = None
    who: UUID | None = None
    tags: set[str] = set()

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def twice(self) -> int:
        return 2 * self.value


class OfDataClass(Entity[DataClassed]):
    async def add(self) -> int:
        self.state.value += 1
        self.state.log.append(f"now {self.state.value}")
        self.state.at, self.state.who = WHEN, WHO
        return self.state.value

    @reading
    async def all(self) -> tuple[int, list[str], datetime | None, UUID | None]:
        return self.state.value, self.state.log, self.state.at, self.state.who


class OfAttrs(Entity[Attred]):
    add: Any = OfDataClass.add
    all: Any = OfDataClass.all


class OfModel(Entity[Modelled]):
    add: Any = OfDataClass.add
    all: Any = OfDataClass.all

    async def spoil(self) -> None:
        self.state = "no model"  # type: ignore[assignment]

    @reading
    async def assign(self) -> None:
        self.state = Modelled(v=0)


@pytest.mark.parametrize("kind", [OfDataClass, OfAttrs, OfModel])
async def test_state_of_any_type_is_kept_and_moves(kind: type[Entity[Any]], tmp_path: Any) -> None:  # noqa: ANN401  # a path
    store = f"sqlite:{tmp_path / 'store'}"
    async with on_stage(1, kind=kind, store=store) as stage:
        (one,) = stage.members
        assert await stage.done(one["a"].add()) == 1
        await stage.leave(one)
        two = await stage.enter(kind=kind, store=store)
        assert await stage.done(two["a"].add()) == 2
        assert await stage.done(two["a"].all()) == (2, ["now 1", "now 2"], WHEN, WHO)


class LeftOut(pydantic.BaseModel):
    kept: int = 0
    secret: int = pydantic.Field(0, exclude=True)


class OfLeftOut(Entity[LeftOut]):
    async def put(self) -> None:
        self.state.secret = 7


async def test_what_a_model_does_not_dump_is_refused_and_not_lost() -> None:
    async with on_stage(1, kind=OfLeftOut) as stage:
        with pytest.raises(ValueTypeError, match="is another one"):
            await stage.done(stage.members[0]["a"].put())


async def test_what_is_no_model_is_refused() -> None:
    async with on_stage(1, kind=OfModel) as stage:
        (models,) = stage.members
        with pytest.raises(ValueTypeError, match="it is of type str"):
            await stage.done(models["a"].spoil())
        with pytest.raises(UsageError, match="cannot assign state"):
            await stage.done(models["a"].assign())
        assert await stage.done(models["a"].add()) == 1


@attrs.define
class Sharing:
    log: list[str] = []  # noqa: RUF008  # that is the mistake


class OfSharing(Entity[Sharing]):
    pass


class Asking(pydantic.BaseModel):
    value: int


class OfAsking(Entity[Asking]):
    pass


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (OfSharing, "Sharing.log is one object for all keys"),
        (OfAsking, "Every field has a default"),
    ],
)
async def test_a_state_that_cannot_begin_is_refused(
    kind: type[Entity[Any]], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        Entities(kind, "counters")


async def test_a_forgotten_await_names_the_method() -> None:
    async with on_stage(1) as stage:
        (counters,) = stage.members
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            counters["a"].add(1)
            gc.collect()
        assert [str(each.message) for each in told] == [
            f"coroutine '{Counter.__name__}.add' was never awaited"
        ]
