"""Further formats, a file each, as those of :mod:`xcrepro.core.formats`."""
