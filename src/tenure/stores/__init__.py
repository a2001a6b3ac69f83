"""Where the state of keys outlives its process, fenced by leases: databases, rows and columns."""
