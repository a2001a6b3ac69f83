"""Observation, for people and programs: counters and log lines."""
