"""Patches on another machine."""
