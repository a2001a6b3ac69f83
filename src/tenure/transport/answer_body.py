"""The body of an answer, all of it, of a server that may send too much or in pieces.

`content.read(n)` gives what has come so far: of an answer that the network has cut in two, the
first part.
"""

import asyncio

import aiohttp


async def read_body(response: aiohttp.ClientResponse, most_bytes: int) -> bytes | None:
    """The whole body; None if it has more than `most_bytes`, and then no more of it is read."""
    try:
        await response.content.readexactly(most_bytes + 1)
    except asyncio.IncompleteReadError as error:
        return error.partial
    return None
