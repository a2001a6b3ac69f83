"""Messages and records as bytes: versions, limits, and what malformed bytes get."""
