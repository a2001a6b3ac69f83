"""Everything that a member has of aiohttp: its servers, and its client of other members."""
