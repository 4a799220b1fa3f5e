"""Draft trees on one data layout: build, walk, ancestors, commit, attention (see README.md)."""
