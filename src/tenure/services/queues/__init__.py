"""Queues for clients that may be offline: of Centrifuge (section 4.3) and PRS (section 3)."""
