"""Settings of the documentation: `python -m sphinx -W --keep-going doc doc/_build`."""

import inspect
import re
import sys
import urllib.error
import urllib.request
import warnings
from pathlib import Path

import sktvdenoise

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import pages  # noqa: E402

project = "sktvdenoise"
author = "The sktvdenoise developers"
copyright = author
release = version = sktvdenoise.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "mathml",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
default_role = "py:obj"
add_module_names = False
toc_object_entries_show_parents = "hide"

# ---- links ----

# Every role that names a class, function or page must resolve. Names in single
# backticks may be parameters or formulas, and need not.
nitpicky = True
nitpick_ignore_regex = [("py:obj", r".*")]

_OTHERS = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
    "matplotlib": "https://matplotlib.org/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
}


def _reachable(url):
    request = urllib.request.Request(url + "objects.inv", method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=5):
            return True
    except (urllib.error.URLError, TimeoutError):
        return False


# Without a network the pages are the same, but for links to other projects.
intersphinx_mapping = {}
if all(map(_reachable, _OTHERS.values())):
    intersphinx_mapping = {name: (url, None) for name, url in _OTHERS.items()}
else:
    nitpick_ignore_regex.append(
        ("py:.*", r"(sklearn|numpy|scipy|pandas|matplotlib)\..*")
    )

# ---- docstrings ----

autosummary_generate = True
autodoc_default_options = {"member-order": "bysource"}
autodoc_typehints = "none"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# All checks of numpydoc, but those that ask for what the house does not: an extended
# summary, examples and references in every method, nameless return values, infinitives.
# All checks of numpydoc, but those that ask for what the house does not: an extended
# summary, examples and references in every method, nameless return values, infinitives,
# descriptions of parameters that are those of `fit` again.
numpydoc_validation_checks = {
    "all", "ES01", "EX01", "PR07", "RT02", "RT03", "SA01", "SS02", "SS05", "SS06",
}  # fmt: skip
numpydoc_validation_exclude = {
    # Short references of the algorithms: formulas say more than tables of parameters.
    r"\.(aggregation|breakpoints|experts|ladder|laplace|linear_experts)\.",
    r"\.(losses|pool)\.",
    # Results, which are not made by users: their fields are under Attributes.
    r"\.(DenoiserComparison|FusedLassoPath|OracleInequality|ProgressiveScore)$",
    r"\.(RegretCurve|TVOracle|neg_dynamic_regret)$",
    r"\.theory\.(Bins|KKTConditions|RegretDecomposition)$",
}

# ---- pages in Markdown ----

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# ---- gallery ----

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("sktvdenoise",),
    "reference_url": {"sktvdenoise": None},
    "prefer_full_module": {r"sktvdenoise\.[a-z_]+"},
    "remove_config_comments": True,
    "show_signature": False,
    "capture_repr": (),
    "write_computation_times": False,
    "within_subsection_order": "pages.GalleryOrder",
    "default_thumb_file": str(HERE / "images" / "nile.png"),
    "matplotlib_animations": False,
}
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")

# ---- looks ----

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = f"sktvdenoise {release}"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "sktvdenoise", "image_light": "_static/logo.svg",
             "image_dark": "_static/logo.svg"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
}  # fmt: skip
html_sidebars = {"index": []}
html_context = {"default_mode": "light"}


def _resolve(app, env, node, contnode):
    """A link to a public object by any of the names under which it can be imported."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    home = pages.home_of(target)
    if home is None or home == target:
        return None
    domain = env.get_domain("py")
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", home, node, contnode
    )


def _skip(app, what, name, obj, skip, options):
    """Leave out what is not for users of a class, or described elsewhere.

    That is what results are made by within the package; the fields of named tuples,
    which stand under Attributes; what scikit-learn adds to every estimator.
    """
    if name in ("at", "of", "within"):
        return True
    if type(obj).__name__ in ("RequestMethod", "_tuplegetter"):
        return True
    if inspect.isroutine(obj) or isinstance(obj, property):
        module = getattr(getattr(obj, "fget", obj), "__module__", None) or ""
        if module.split(".")[0] != "sktvdenoise":
            return True
    return None


def _plain(app, what, name, obj, options, lines):
    """Docstrings are written to be read as text: protect what reads as markup."""
    block, quoted = None, False  # indentation of a literal or math block; in backticks
    for i, line in enumerate(lines):
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if block is not None and text and indent <= block:
            block = None
        if block is None:
            # ndarray of shape (n_features_in_,)
            line = re.sub(r"(?<![`\w])(\w+)_(?=[,)])", r"\1\\_", line)
            if what == "module":
                line = re.sub(r"^\.\. \[(\d)\] ", r"\1. ", line)
            if "|" in line and "`" not in line and not quoted and text[:3] != ">>>":
                line = line.replace("|", r"\|")  # an absolute value
            lines[i] = line
            if text.endswith("::"):
                block = indent
            quoted ^= text.count("`") % 2 == 1


def setup(app):
    pages.write(HERE / "api" / "index.rst")
    app.connect("missing-reference", _resolve)
    app.connect("autodoc-skip-member", _skip)
    # Before numpydoc, which has the default priority, 500.
    app.connect("autodoc-process-docstring", _plain, priority=400)
