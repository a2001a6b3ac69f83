"""Contracts of what only this project implements. Those that users may implement are in the kit."""
