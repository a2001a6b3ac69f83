"""Who leads, and the log that the leader writes and everybody else follows; of no one protocol."""
