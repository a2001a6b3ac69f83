"""The world of leases: owners, lookups and their users, beside the managers of `tenure.sim.lease`.

Seeds of it run on all cores; and there are pools small enough to look at every story.
"""
