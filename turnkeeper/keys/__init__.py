"""The keys room: which keys there are, how they fare, and which one is asked next (S3.3)."""
