"""Which nodes keep which rows: the ring, the replicas of each range, and how both change."""
