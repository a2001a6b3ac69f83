"""The engines, which keep entries on one machine: in memory, or in a directory."""
