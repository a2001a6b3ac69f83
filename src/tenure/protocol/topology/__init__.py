"""The topology: which nodes keep which rows: the ring, the replicas of each range, and changes of
both.
"""
