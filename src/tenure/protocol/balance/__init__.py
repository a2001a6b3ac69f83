"""Policies, behind one interface: they propose which owner should have which range, no more."""
