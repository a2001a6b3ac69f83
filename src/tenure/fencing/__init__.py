"""Stores that refuse what an earlier owner of a key sends late."""
