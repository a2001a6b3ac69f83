"""Suites of tests that every implementation of an interface must pass, also one of your own."""
