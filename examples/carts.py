"""Shopping carts in the memory of several worker processes: each cart is in one of them.

    tenure run -- uvicorn examples.carts:app --workers 4

Ask any worker: the one that has the cart answers. Workers that end hand their carts over.
"""

from typing import Annotated

from fastapi import Depends, FastAPI

from tenure import Lease, Member, OwnedState, Relay, owned

carts: OwnedState[list[str]] = OwnedState(value_type=list[str], ttl=3600, limit=100_000)
member = Member("carts", hand_off=carts)

app = FastAPI(lifespan=member.lifespan)
app.add_middleware(Relay, member=member, key="/carts/{user}", ready="/ready")


async def add(user: str, article: str) -> int:
    """Put an article into a cart, and return how many it has then."""
    async with carts.at(user) as cart:
        cart.value = [*(cart.value or []), article]
        return len(cart.value)


@app.post("/carts/{user}")
async def post(
    user: str,
    article: str,
    lease: Annotated[Lease, Depends(owned("user"))],  # 421, unless this process has the cart
) -> int:
    """Put an article into a user's cart."""
    return await add(user, article)


@app.get("/carts/{user}")
async def get(user: str) -> list[str]:
    """Return what is in a user's cart."""
    async with carts.at(user) as cart:
        return cart.value or []
