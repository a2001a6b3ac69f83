"""Rows of columns on replicas: versions, merging, what a replica admits, and what a page shows."""
