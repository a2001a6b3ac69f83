"""A journal in a file of SQLite: the managers of one host share it."""
