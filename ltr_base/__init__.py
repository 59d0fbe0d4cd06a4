"""What the other packages stand on: compiled kernels, names that users write and that packages hand
out, this machine. Knows no rows, no models and no text."""
