"""What to run on what."""
