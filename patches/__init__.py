"""What changes in an installed vLLM, and the only code that writes there."""
