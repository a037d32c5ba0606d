"""What only maintainers run, in a clone: ``python -m maintenance.NAME``, with check, hub, environment, train."""
