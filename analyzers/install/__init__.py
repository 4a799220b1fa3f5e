"""What the metadata of an environment says about an install; nothing is ever imported."""
