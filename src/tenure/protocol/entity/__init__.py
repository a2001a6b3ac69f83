"""What one entity is, and what may happen to it: turns, repeats, alarms, frames of sockets."""
