"""What the manager decides while it leads, and how it comes to lead."""
