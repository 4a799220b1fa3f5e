"""What a single function does, seen by its structure: loads, loops, what a loop carries along."""
