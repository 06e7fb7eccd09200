"""What is on the generated pages, and in which order: the API and the gallery.

The API page has every public name, from the `__all__` of the modules. A name that
several modules offer is documented once, under its home: the package itself, else the
first module of `MODULES` that has it.
"""

from importlib import import_module
from pathlib import Path

PACKAGE = "sktvdenoise"

# In reading order, with the heading of each on the page; others follow by name.
MODULES = {
    "online": "Online denoising",
    "filter": "Online denoising of features",
    "geometric_cover": "Geometric covers",
    "linear": "Adaptive regression and classification",
    "offline": "The fused lasso",
    "cross_validation": "Cross-validation",
    "path": "The whole path",
    "metrics": "Regret",
    "model_selection": "Progressive evaluation",
    "comparison": "Comparison",
    "plotting": "Pictures",
    "datasets": "Data",
    "baselines": "Baselines",
    "theory": "Theory",
    "breakpoints": "Breakpoints",
    "losses": "Losses",
    "aggregation": "Aggregation: numpy references",
    "experts": "Experts: numpy references",
    "linear_experts": "Experts with covariates: numpy references",
    "ladder": "The ladder of regressions: numpy references",
    "laplace": "The pool for counts and classes: numpy references",
    "pool": "The pool: numpy references",
    "river": "As a model of river",
}


def modules():
    """Public modules by name, those without a heading, too; river if it is there."""
    folder = Path(import_module(PACKAGE).__file__).parent
    names = [path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")]
    found = {}
    for name in sorted(names, key=lambda name: [*MODULES, name].index(name)):
        try:
            found[name] = import_module(f"{PACKAGE}.{name}")
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    return found


def homes():
    """Module, or "" for the package, and name of each public object, by identity."""
    package = import_module(PACKAGE)
    found, by_name = {}, {}
    for module in modules().values():
        for name in module.__all__:
            path = f"{module.__name__}.{name}"
            if name in package.__all__:
                path = f"{PACKAGE}.{name}"
            found.setdefault(id(getattr(module, name)), path)
    for module in (package, *modules().values()):
        for name in module.__all__:
            if not name.startswith("_"):
                path = found.get(id(getattr(module, name)))
                by_name[f"{module.__name__}.{name}"] = path
                by_name.setdefault(name, path)
    return by_name


_HOMES = {}


def home_of(target):
    """Where `target`, perhaps a method, is documented; None if it isn't public."""
    if not _HOMES:
        _HOMES.update(homes())
    owner, _, member = target.rpartition(".")
    if target in _HOMES:
        return _HOMES[target]
    if owner in _HOMES:
        return f"{_HOMES[owner]}.{member}"
    return None


def listing():
    """For each module the homes of the names that are documented in its section."""
    seen, sections = set(), {}
    for short, module in modules().items():
        paths = [home_of(f"{module.__name__}.{name}") for name in module.__all__]
        sections[short] = [p for p in dict.fromkeys(paths) if p not in seen]
        seen.update(sections[short])
    return sections


def page():
    """The page, in reStructuredText."""
    lines = ["API", "===", ""]
    for short, paths in listing().items():
        heading = MODULES.get(short, short.replace("_", " ").capitalize())
        lines += [heading, "-" * len(heading), ""]
        lines += [f".. automodule:: {PACKAGE}.{short}", "   :no-members:", ""]
        if paths:
            lines += [f".. currentmodule:: {PACKAGE}", ""]
            lines += [".. autosummary::", "   :toctree: generated", "   :nosignatures:"]
            lines += ["", *(f"   {path.removeprefix(PACKAGE + '.')}" for path in paths)]
            lines += [""]
    return "\n".join(lines)


def write(path):
    """Write the page where it is new, so that an unchanged one isn't built again.

    Pages of names that aren't listed any more go.
    """
    text = page()
    path.parent.mkdir(exist_ok=True)
    listed = {name for names in listing().values() for name in names}
    for old in (path.parent / "generated").glob("*.rst"):
        if old.stem not in listed:
            old.unlink()
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


# The first ones of the gallery; others follow by name.
GALLERY = (
    "plot_nile.py",
    "plot_sunspots.py",
    "plot_intervals.py",
    "plot_experts.py",
    "plot_comparison.py",
    "plot_regret.py",
    "plot_late_labels.py",
    "plot_drift.py",
    "plot_okun.py",
    "plot_pipeline.py",
    "plot_counts.py",
    "plot_channels.py",
    "plot_river.py",
)


class GalleryOrder:
    """Sort key of the scripts, as sphinx-gallery makes it."""

    def __init__(self, folder):
        pass

    def __repr__(self):
        return type(self).__name__

    def __call__(self, name):
        return (GALLERY.index(name) if name in GALLERY else len(GALLERY), name)
