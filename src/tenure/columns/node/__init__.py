"""A node of the store in its own process: what runs its machines, and what its disk keeps."""
