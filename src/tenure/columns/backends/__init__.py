"""The backends of a store: engines in this process, or a cluster."""
