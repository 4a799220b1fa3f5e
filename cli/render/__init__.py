"""One result in, one string out: terminal, plain lines, JSON, SARIF, Markdown."""
