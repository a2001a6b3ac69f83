"""The decisions of a manager while it leads, and the way in which it comes to lead."""
