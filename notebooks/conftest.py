"""How nbval takes the notebooks."""

# The master notebook runs all the others; under nbval these run one by one anyway.
collect_ignore = ["00_regenerate_all.ipynb"]


def pytest_runtest_setup(item) -> None:
    """Leave stderr out of every comparison: it is in no committed notebook, and a training says there what it does."""
    skipped = getattr(item.parent, "skip_compare", None)
    if skipped is not None and "stderr" not in skipped:
        item.parent.skip_compare = (*skipped, "stderr")
