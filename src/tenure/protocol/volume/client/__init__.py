"""The client of volumes: which entries a cache may believe, and until when."""
