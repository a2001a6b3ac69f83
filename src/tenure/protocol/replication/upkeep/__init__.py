"""What a node does unasked, so that replicas become and stay the same."""
