"""Read-only forensics: find an install, read its code, decide what its verification is."""
