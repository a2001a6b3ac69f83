"""The simulator of the Volume Leases paper (its section 4): what consistency costs, by algorithm.

A trace of reads and writes is replayed, one event after the other, against each of the paper's
seven algorithms. Caches are infinite and nothing fails, so only messages, server state and stale
reads differ.
"""
