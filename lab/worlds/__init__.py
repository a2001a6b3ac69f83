"""Simulated worlds of all tiers, and the small worlds that are searched.

The simulator, its managers and the world of users' programs are in `tenure.sim`, because the
testing kit runs users' services in them.
"""
