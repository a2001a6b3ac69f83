"""Who should have what: policies behind one interface. They only propose."""
