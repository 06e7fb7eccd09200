"""Examples in docstrings and in the README run as printed."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

import sktvdenoise

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
MODULES = [
    module.name
    for module in pkgutil.iter_modules(sktvdenoise.__path__, "sktvdenoise.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", ["sktvdenoise", *MODULES])
def test_docstring_examples_run(name):
    if name.endswith((".plotting", "_display")):
        pytest.importorskip("matplotlib").use("Agg")
    if name.endswith(".river"):
        pytest.importorskip("river")
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0


def test_public_names_are_sorted_and_there():
    names = sktvdenoise.__all__
    assert names == sorted(names)
    for name in names:
        assert hasattr(sktvdenoise, name)


@pytest.mark.parametrize(
    "name", [n for n in sktvdenoise.__all__ if not n.startswith("_")]
)
def test_public_names_have_an_example(name):
    assert ">>> " in getattr(sktvdenoise, name).__doc__


@pytest.mark.skipif(not README.exists(), reason="tests run without the repository")
def test_readme_snippets_run(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    snippets = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.S)
    assert snippets
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), namespace)


def script(name):
    """A module of the documentation, which is not installed."""
    path = ROOT / "doc" / name
    if not path.exists():
        pytest.skip("tests run without the repository")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_formulas_become_mathml_or_are_refused():
    pytest.importorskip("sphinx")
    pytest.importorskip("latex2mathml")
    to_mathml = script("mathml.py").to_mathml
    text = re.sub(r"<.*?>", " ", to_mathml(r"|x| \le \tfrac32 B_{t-1}", block=False))
    assert text.split() == "&#x0007C; x &#x0007C; &#x02264; 3 2 B t &#x02212; 1".split()
    assert to_mathml(r"x &= 1 \\ y &= 2", block=True).count("<mtr>") == 2
    assert "<munder>" in to_mathml(r"\min_u f(u) \tag{1}", block=True)
    with pytest.raises(ValueError, match=r"unknown .*nonsense"):
        to_mathml(r"\nonsense x", block=False)


def test_broken_links_are_found(tmp_path):
    broken = script("check_links.py").broken
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="#top"></a><a href="b.html#here"></a>'
        '<a href="b.html#there"></a><img src="c.png"><a href="https://x.test/y"></a>'
    )
    (tmp_path / "b.html").write_text('<p id="here"></p>')
    assert {target for _, target in broken(tmp_path)} == {"b.html#there", "c.png"}


def test_the_api_page_lists_every_public_name_once():
    pages = script("pages.py")
    listed = [path for paths in pages.listing().values() for path in paths]
    assert len(set(listed)) == len(listed)

    def found(path):
        module, name = path.rsplit(".", 1)
        return getattr(importlib.import_module(module), name)

    known = {id(found(path)) for path in listed}
    for module in (sktvdenoise, *pages.modules().values()):
        for name in module.__all__:
            assert name == "__version__" or id(getattr(module, name)) in known, name
    # Nothing else, and what the package offers goes by that name.
    for path in listed:
        module, name = path.rsplit(".", 1)
        assert name in importlib.import_module(module).__all__
        assert (module == "sktvdenoise") == (name in sktvdenoise.__all__)
    page = pages.page()
    assert all(f"   {path.removeprefix('sktvdenoise.')}\n" in page for path in listed)


@pytest.mark.skipif(not README.exists(), reason="tests run without the repository")
def test_the_citation_has_the_version_of_the_package():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    (version,) = re.findall(r"^version: (.+)$", text, re.M)
    assert version == sktvdenoise.__version__
    required = ("cff-version", "message", "title", "authors")
    assert all(re.search(rf"^{key}:", text, re.M) for key in required)


PAGES = sorted((ROOT / "doc" / "guide").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_snippets_of_the_guide_run(page):
    snippets = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)
    namespace = {}
    for snippet in snippets:
        exec(compile(snippet, str(page), "exec"), namespace)
