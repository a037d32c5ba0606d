"""The version: one file, so that whoever writes it into what it makes imports nothing else."""

__version__ = "0.1.0"
