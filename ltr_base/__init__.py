"""Foundations of the other packages: compiled kernels, lazy imports, names in messages, properties
of the machine. Knows nothing of rows, models or text."""
