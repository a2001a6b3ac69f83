"""Consistent caches: a client holds copies of a server's objects, each until a known time (Volume
Leases).

A client answers a read from its own memory while two leases run: the object's, which is long, and
the volume's, which is short and shared by all objects of one server. A server writes once every
client that holds both has acknowledged the invalidation, or one of the two has ended. So a write
waits for seconds at most, whatever becomes of a client, and a lease costs little (section 3).

The rules have numbers, V1 to V21: see `tenure docs internals/volumes`.
"""
