"""In the kernels of a rehearsal: the catalogue with the stand-ins' sizes in place of the published ones."""

import os
from pathlib import Path

if folder := os.environ.get("XCREPRO_REHEARSAL"):
    from xcrepro.core.data import registry

    registry._FOLDER = Path(folder)
