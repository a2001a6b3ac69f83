"""Carrying messages between clients and managers: in memory, over WebSocket, with faults."""
