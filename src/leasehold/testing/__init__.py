"""What leasehold is tested with, for your tests too."""
