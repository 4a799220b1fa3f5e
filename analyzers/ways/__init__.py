"""Whether every way from the target's logits to the tokens that are kept was explained."""
