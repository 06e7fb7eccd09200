"""Examples in docstrings and in the README run as printed."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import sktvdenoise

README = Path(__file__).parents[1] / "README.md"
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
