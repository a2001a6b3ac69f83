"""An owner behind a port that several processes share, and the adapters for web servers."""
