"""What happened, for people and programs to see: counters and log lines."""
