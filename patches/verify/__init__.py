"""Prove in a target's own interpreter that its trees decode greedily, and measure what they cost."""
