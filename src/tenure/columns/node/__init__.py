"""A node of the store in its own process: it runs the node's machines, and keeps the node's
data.
"""
