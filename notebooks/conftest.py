"""The master notebook runs all the others; under nbval these run one by one anyway."""

collect_ignore = ["00_regenerate_all.ipynb"]
