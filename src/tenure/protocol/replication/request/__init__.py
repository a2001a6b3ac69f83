"""What a node does for clients: each request is a conversation."""
