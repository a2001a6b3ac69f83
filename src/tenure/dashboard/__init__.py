"""The pages that a manager shows to people."""
