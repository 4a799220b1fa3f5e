"""The inspected code as a program: modules, names, receivers, and what an engine path can reach."""
