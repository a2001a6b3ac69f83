"""Topics, subscriptions and messages: the Publish-Subscribe of the PRS paper (sections 3, 3.1)."""
