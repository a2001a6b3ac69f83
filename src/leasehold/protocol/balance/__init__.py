"""Who should have what: policies behind one interface. They propose; the lease protocol disposes."""
