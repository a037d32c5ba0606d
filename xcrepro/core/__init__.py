"""Read data and predictions, measure, calibrate, decide: what most of ``import xcrepro as xc`` gives."""
