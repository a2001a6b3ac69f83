"""A journal in etcd: several managers on several hosts share it."""
