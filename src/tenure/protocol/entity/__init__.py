"""One entity and everything that may happen to it: turns, repeats, alarms, frames of sockets."""
