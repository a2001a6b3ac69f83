"""Consistent caches: `Cache` in frontends, `Volume` and `CacheServer` at what they read."""
