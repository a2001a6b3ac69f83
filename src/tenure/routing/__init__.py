"""Clients that send each request to the owner of its key: for aiohttp, httpx and httpx2."""
