"""Suites of tests that every implementation of an interface must pass, including your own."""
