"""The libraries in your processes: `Owner` in those that serve keys, `Lookup` in those that
route.
"""
