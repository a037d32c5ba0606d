"""Sphinx's settings for the site; the sources are staged under ``build/site`` (``docs/sources.py``)."""

import xcrepro

project = "xcrepro"
author = copyright = "The xcrepro developers"
version = release = xcrepro.__version__
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
root_doc = "index"
exclude_patterns = ["_static"]
suppress_warnings = ["config.cache"]

# Notebooks as committed: nothing runs here.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4

# One file, with glyphs as paths: no fonts to fetch, so formulas also show where the pages are opened as files.
mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "local"}}

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
# References in our sentences must resolve; the words for types in parameter lists are words.
nitpicky = True
nitpick_ignore_regex = [(r"py:(class|obj|data|exc)", r".*")]

html_theme = "sphinx_book_theme"
html_title = "xcrepro"
html_static_path = ["_static"]  # and where python -m docs puts MathJax
html_css_files = ["site.css"]
html_js_files = ["sortable.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # it fetches pages, which a browser refuses where the site is opened as files
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "extra_footer": "Text: CC BY 4.0. Code: MIT.",
}
