"""Where a vLLM is: every kind of target ends in one `Source` of bytes and one set of facts."""
