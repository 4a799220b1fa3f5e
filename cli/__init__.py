"""The `ddtree` command: parse, call, render."""
