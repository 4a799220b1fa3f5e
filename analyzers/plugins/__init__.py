"""Plug-ins that change an engine when it starts: what they replace, and which runner they start."""
