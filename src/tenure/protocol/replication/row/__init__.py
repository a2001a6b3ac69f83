"""What one replica decides about a row: it knows of no other node."""
