"""A run of the simulator that people watch in the documents: told as JSON, played in a browser."""
