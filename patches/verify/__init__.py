"""Prove in a target's own interpreter that trees decode greedily, and measure what they cost."""
