"""What only maintainers run, in a clone: ``python -m maintenance.NAME``, with check, croissant, environment, train."""
