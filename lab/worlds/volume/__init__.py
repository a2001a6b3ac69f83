"""Worlds of consistent caches: a volume's server, its clients and a store, on the kernel.

The machines are those of `protocol/volume`. A world has the store that the server loads from and
writes to, applications that read and write, every fault of the kernel, and some that only this tier
can have: readers that are stopped between any two steps of a hit, late writes of a dead server to
its store, memories that are lost or restored.
"""
