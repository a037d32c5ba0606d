"""What only maintainers run, in a clone: ``python -m maintenance.check``, ``.train``, ``.environment``; it is not shipped."""
