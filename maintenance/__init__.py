"""What only maintainers run, in a clone: ``python -m maintenance.check``, ``.train``, ``.environment``, ``.croissant``; it is not shipped."""
