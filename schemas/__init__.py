"""Record types, and the functions that create them."""
