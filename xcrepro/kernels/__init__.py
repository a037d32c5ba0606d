"""Numba kernels: one file a job, no file imports another (numba's disk cache would go stale), input trusted."""
