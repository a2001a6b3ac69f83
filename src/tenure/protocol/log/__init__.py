"""Leadership, and the log that the leader writes and all others follow, for any protocol."""
