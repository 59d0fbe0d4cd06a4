"""What the other packages stand on: compiled kernels. Knows no rows, no models and no text."""
