"""Numba kernels: arrays in, arrays out; no validation, no globals."""
