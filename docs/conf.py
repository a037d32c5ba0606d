"""Sphinx's settings for the site; the sources are staged under ``build/site`` (``docs/sources.py``)."""

import operator
import re

import xcrepro

project = "xcrepro"
author = copyright = "The xcrepro developers"
version = release = xcrepro.__version__
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
root_doc = "index"
exclude_patterns = ["_static"]
# A word for a type that two classes bear: the parameter lists are words, not links.
suppress_warnings = ["ref.python"]

# Notebooks as committed: nothing runs here.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_merge_streams = True
nb_render_markdown_format = "myst"  # what cells show as Markdown has tables; CommonMark has none
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4

# One file with all of TeX, and glyphs as paths: nothing more to fetch, so formulas show also where pages are opened as files.
mathjax_path = "mathjax/tex-svg-full.js"
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "local"}}

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
# References to functions and modules must resolve; words for types and attributes are words, kernels and papers have no page.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:(class|obj|data|exc|attr|meth)", r".*"),
    (r"py:mod", r"xcrepro\.\w+\.(kernels|papers)\b.*"),
    (r"py:func", r"(?!xcrepro\.)\w+\.\w+.*"),  # another library's
]

html_theme = "sphinx_book_theme"
html_title = "xcrepro"
html_static_path = ["_static"]  # and where python -m docs puts MathJax and the words
html_css_files = ["site.css"]
html_js_files = [("page.js", {"defer": "defer"}), "terms-data.js", "terms.js", "explore.js"]
html_copy_source = False
html_show_sourcelink = False
# terms.js takes it back where the site is opened as files, from which nothing can be fetched.
html_show_search_summary = True
html_context = {"default_mode": "auto"}  # until the reader chooses; the theme has none, and its script complains
html_theme_options = {
    "navbar_start": [],  # the side bar has it all
    "navbar_center": [],
    "navbar_end": [],
    "navbar_persistent": [],
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "extra_footer": "Text: CC BY 4.0. Code: MIT.",
}


def escape_bars(app, what, name, obj, options, lines) -> None:
    """``|y|`` in a docstring's sentences is a number of labels, no substitution of reStructuredText."""
    example = False
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            parts = re.split(r"(``.*?``|`[^`]*`)", line)
            lines[i] = "".join(part if part.startswith("`") else part.replace("|", r"\|") for part in parts)


def public_name(app, env, node, contnode):
    """``xcrepro.evaluate`` is written where ``xcrepro.core.metrics.evaluate.evaluate`` is described: found by looking it up."""
    module, _, name = node.get("reftarget", "").rpartition(".")
    if node.get("refdomain") != "py" or not module.startswith("xcrepro"):
        return None
    try:
        found = operator.attrgetter(f"{module}.{name}".partition(".")[2])(xcrepro)
        target = f"{found.__module__}.{found.__qualname__}"
    except (ImportError, AttributeError):
        return None
    return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, node["reftype"], target, node, contnode)


def setup(app) -> None:
    app.connect("missing-reference", public_name)
    app.connect("autodoc-process-docstring", escape_bars)
