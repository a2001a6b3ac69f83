"""The keys of a cluster, one for each use of its secret."""

from hashlib import blake2b


def cluster_key(secret: bytes, cluster: str, purpose: bytes) -> bytes:
    """The key for one purpose. The whole name of the cluster is part of it, because two clusters
    may have been given the same secret.
    """
    name = blake2b(cluster.encode()).digest()
    return blake2b(secret, key=name, person=purpose).digest()
