"""Consistent caches: `Cache` in frontends, `Volume` and `CacheServer` in the processes that they
read from.
"""
