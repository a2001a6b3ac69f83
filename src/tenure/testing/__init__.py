"""What tenure is tested with, for your tests too."""
