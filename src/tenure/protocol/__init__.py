"""Everything that decides. Pure: events and the time in, actions and the next wake-up out."""
