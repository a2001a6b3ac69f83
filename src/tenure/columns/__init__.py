"""Rows of columns and super columns that last, on one machine or on Cassandra."""
