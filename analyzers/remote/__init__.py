"""Installs on other machines and in containers: one command there, one framed reply."""
