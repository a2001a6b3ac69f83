"""A limit for each user, as a dependency of FastAPI: twenty requests at once, five more a second.

`tenure run -- uvicorn user_limits:app --workers 4`: four workers, and one bucket for each user.
"""

import math
from typing import Annotated

import msgspec
from fastapi import Depends, FastAPI, Header, HTTPException

from tenure import Entities, Entity


class Bucket(msgspec.Struct):
    tokens: float = 20
    at: float = 0


class Limit(Entity[Bucket]):
    async def take(self) -> float:
        """0, or the seconds until there is a token. A crash fills the bucket."""
        now = self.now()  # wall time that never goes back for this key
        tokens = min(20, self.state.tokens + 5 * (now - self.state.at))
        self.state = Bucket(tokens - (tokens >= 1), now)
        return 0 if tokens >= 1 else (1 - tokens) / 5


limits = Entities(Limit, pool="limits", idle=60)


async def limited(x_user: Annotated[str, Header()]) -> None:
    if wait := await limits[x_user].take():
        raise HTTPException(429, headers={"Retry-After": str(math.ceil(wait))})


app = FastAPI(lifespan=limits.lifespan, dependencies=[Depends(limited)])


@app.get("/")
async def hello() -> str:
    return "hello"
