"""Numba kernels: arrays in, arrays out; callers check and cast."""
