"""What stands behind a store: engines in this process, or a cluster."""
