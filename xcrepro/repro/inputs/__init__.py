"""The one door between the papers and what they measure: datasets, and saved, trained or calibrated predictions."""
