"""Seeds of the world of leases, on all cores; and pools small enough to look at every story."""
