"""Numba kernels that train and search models, as those of :mod:`xcrepro.core.kernels`."""
