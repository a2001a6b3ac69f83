"""Worlds of the store on several machines: nodes over disks, clients, and owners, on the kernel.

The machines are those of `protocol/replication`. Each node has a real replica over the engine in
memory, which loses what was not synced. The world says who is up, and what the ring is like.
"""
