"""What runs on the other side, with the standard library of Python 3.8 or later alone.

It travels with the modules that it imports (see `bundle`), so that an install is found, read and
compared there by the very code that does so here. Nothing is written on the other side.
"""
