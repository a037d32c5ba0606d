"""How well calibrated are extreme classifiers."""
