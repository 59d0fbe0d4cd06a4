"""What the other packages stand on: compiled kernels, and names that users write. Knows no rows, no
models and no text."""
