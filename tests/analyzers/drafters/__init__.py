"""Drafters of a tiny engine, one per file: `trees` propose trees, `others` do not.

Files are inputs in the style of engine code, which is not typed. Every file has a class `Drafter`.
"""
