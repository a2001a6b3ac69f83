"""Simulated worlds of the tiers over leases, and the small worlds that are searched.

The simulator, the world of leases and that of users' programs are in `tenure.sim`, because the
testing kit runs users' services in them.
"""
