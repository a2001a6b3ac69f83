"""Messages and records as bytes: versions, limits, and the treatment of malformed bytes."""
