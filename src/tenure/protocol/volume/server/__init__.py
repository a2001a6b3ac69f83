"""The server of a volume: who may hold what until when, and when a write may be done."""
