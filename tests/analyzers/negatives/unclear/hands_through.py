# mypy: ignore-errors
"""Nothing is compared at all: whatever was drafted is emitted."""


def verify(tokens, target):
    return tokens.where(tokens >= 0, target)
