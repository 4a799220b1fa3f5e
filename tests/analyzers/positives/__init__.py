"""Real tree verification in many styles, one per file: inputs that must be found to be `tree`.

Every file has a function `verify`. Its parameters name what it needs: `tokens` and `target` (the
target's token at each node) `[rows, nodes]`, and the topology in the form that it walks. It gives
the target's tokens along the accepted path, then -1. Files are inputs in the style of engine code,
which is not typed; `test_inputs.py` runs them against a plain walk.
"""
