"""What acts on one's own predictions and classes: report, diagnose, formats, judged, blocks, course, commands."""
