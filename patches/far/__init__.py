"""Patch an install on another machine or in a container.

The plan's edits are made here, where libcst is; all else is done there by the very modules that do
it here, which travel with the request (`analyzers.remote.bundle`): the lock, the journal, the
writes, the checks and the recovery. So a link that breaks leaves what a killed process leaves.
"""
