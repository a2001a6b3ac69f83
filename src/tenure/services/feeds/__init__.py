"""Feeds, coalesced and transformed: the PRS paper's RSS-Processor (sections 3, 3.1, 3.3)."""
