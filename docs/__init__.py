"""The site: ``python -m docs`` builds it from the notebooks, figures and pages as they are committed."""
