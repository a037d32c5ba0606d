"""The one door between the papers and what they measure: datasets, saved or trained predictions, calibrated
predictions."""
