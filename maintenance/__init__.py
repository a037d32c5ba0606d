"""What only maintainers run, in a clone: ``python -m maintenance.check``, ``.croissant``, ``.environment``, ``.train``."""
