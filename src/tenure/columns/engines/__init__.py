"""Where entries are kept on one machine: in memory, or in a directory."""
