"""False friends, one per file: inputs that must never be found to be `tree`.

`linear/` and `unclear/` hold a `verify` that an engine calls to decide on acceptance; `beside/`
holds code that stands in an engine which decides by a plain chain, hooked where it would stand.
"""
