"""What acts on one's own predictions and classes: report, diagnose, formats, blocks, course, commands."""

from __future__ import annotations

from xcrepro.core import plugins

plugins.serve("xcrepro.repro.inputs", "xcrepro.tools.diagnose")
plugins.serve("xcrepro.repro.inputs", "xcrepro.tools.formats")
