"""Auctions: everybody looks at the highest bid, in whichever process, and few make one.

`tenure run -- uvicorn auction:app --workers 4`.
"""

import msgspec
from fastapi import FastAPI, Request, Response

from tenure import Entities, Entity, TenureError, reading, refusal


class Bid(msgspec.Struct):
    amount: int = 0
    bidder: str = ""


class Auction(Entity[Bid]):
    async def bid(self, amount: int, bidder: str) -> bool:
        if amount <= self.state.amount:
            return False
        self.state = Bid(amount, bidder)
        return True

    @reading
    async def highest(self, above: int) -> Bid:  # runs where it is called
        while self.state.amount <= above:
            await self.changed()
        return self.state


auctions = Entities(Auction, pool="auctions", reads="everywhere")
app = FastAPI(lifespan=auctions.lifespan)


@app.post("/auctions/{item}")
async def bid(item: str, amount: int, bidder: str) -> bool:
    return await auctions[item].bid(amount, bidder)


@app.get("/auctions/{item}")
async def highest(item: str, above: int = -1) -> dict[str, int | str]:  # waits for a higher one
    bid = await auctions[item].highest(above)
    return {"amount": bid.amount, "bidder": bid.bidder}


@app.exception_handler(TenureError)
async def refused(request: Request, error: TenureError) -> Response:
    answer = refusal(error)
    if answer is None:
        raise error
    return Response(answer.text, answer.status, answer.headers)
