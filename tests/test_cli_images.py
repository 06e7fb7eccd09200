"""Images that the command line draws."""

import os
import sys

import numpy as np
import pytest

from sktvdenoise import OnlineTVDenoiser
from sktvdenoise.__main__ import main
from sktvdenoise.datasets import load_nile


@pytest.mark.parametrize("kind", ["png", "svg"])
@pytest.mark.parametrize(
    ("text", "xlabel"),
    [
        ("t,v\n1,5\n2,7\n3,6\n", "t"),
        ("day,v\n2020-01-01,5\n2020-01-02,7\n", "day"),
        ("t,v\n2,5\n1,7\n", "row"),
        ("v,name\n5,x\n7,y\n", "row"),
        ("v\n5\n7\n", "row"),
    ],
)
def test_plot(run, tmp_path, monkeypatch, kind, text, xlabel):
    pytest.importorskip("matplotlib")
    from sktvdenoise.plotting import DenoisingDisplay

    drawn = []
    plot = DenoisingDisplay.plot
    monkeypatch.setattr(
        DenoisingDisplay, "plot", lambda self, ax: drawn.append(plot(self, ax))
    )
    (tmp_path / "a.csv").write_text(text)
    status, out, err = run("denoise", "a.csv", "--column", "v", "--plot", f"a.{kind}")
    assert (status, err) == (0, "")
    assert out == run("denoise", "a.csv", "--column", "v")[1]
    magic = {"png": b"\x89PNG", "svg": b"<?xml"}[kind]
    assert (tmp_path / f"a.{kind}").read_bytes().startswith(magic)

    (display,) = drawn
    assert display.ax_.get_xlabel() == xlabel
    assert display.ax_.get_ylabel() == "v"
    names, *rows = (line.split(",") for line in text.splitlines())
    values = [float(row[names.index("v")]) for row in rows]
    np.testing.assert_array_equal(display.observations, values)
    model = OnlineTVDenoiser()
    predictions = model.partial_fit_predict(np.arange(len(values)), values)
    np.testing.assert_array_equal(display.estimate[1:], predictions[1:])


def test_plot_is_all_or_nothing(run, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "bad.csv").write_text("1\nx\n")
    assert run("denoise", "bad.csv", "--plot", "a.png")[0] == 2
    for name in ("a.doc", "a.pgf", "a"):
        status, _, err = run("denoise", "nile", "--plot", name)
        assert status == 2 and f"cannot write {name}: the name" in err
    status, _, err = run("denoise", "nile", "--plot", "no/a.png")
    assert status == 2 and "cannot write no/a.png" in err
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


@pytest.mark.parametrize(
    ("text", "xlabel"),
    [
        ("price $a_$,v\n1,5\n2,7\n", "price $a_$"),
        ("流量,v\n1,5\n2,7\n", "流量"),
        ("t,v\n1e308,5\n1.7e308,7\n", "row"),
        ("t,v\n-1e300,1e140\n1e300,-1e140\n", "t"),
        ("t,v\n5e-324,5\n1e-323,7\n", "t"),
        ("day,v\n0001-01-01,5\n9998-12-31,7\n", "row"),
        ("day,v\n1000-01-01,5\n8999-12-31,7\n", "day"),
        ("t,v\n1,NA\n2,NA\n", "t"),
    ],
)
def test_plot_of_anything(run, tmp_path, monkeypatch, text, xlabel):
    figure = pytest.importorskip("matplotlib.figure").Figure
    shown = []
    savefig = figure.savefig

    def save(self, *args, **kwargs):
        label = self.axes[0].xaxis.label
        shown.append(label._preprocess_math(label.get_text())[0])
        savefig(self, *args, **kwargs)

    monkeypatch.setattr(figure, "savefig", save)
    (tmp_path / "a.csv").write_text(text)
    argv = ["--column", "v", "--missing", "skip", "--plot", "a.png"]
    status, _, err = run("denoise", "a.csv", *argv)
    assert (status, err) == (0, "")
    assert shown == [xlabel]


def test_plot_that_cannot_be_drawn(run, tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure").Figure

    def savefig(*args, **kwargs):
        raise RuntimeError("no such font\nand more")

    monkeypatch.setattr(figure, "savefig", savefig)
    message = "sktvdenoise: error: cannot draw a.png: no such font\n"
    assert run("denoise", "nile", "--plot", "a.png") == (2, "", message)
    assert not list(tmp_path.iterdir())


def test_plot_shows_the_breakpoints(run, monkeypatch):
    pytest.importorskip("matplotlib")
    shown = []
    monkeypatch.setattr(
        "sktvdenoise.plotting.DenoisingDisplay.plot",
        lambda self, ax: shown.append(list(self.breakpoints)),
    )
    run("denoise", "nile", "--plot", "a.png")
    run("demo")
    expected = OnlineTVDenoiser().fit(*load_nile(return_X_y=True)).breakpoints_
    assert shown == [list(expected)] * 2


def test_plot_without_matplotlib(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, err = run("denoise", "nile", "--plot", "a.png", "--output", "a.csv")
    assert (status, out) == (2, "")
    assert "pip install sktvdenoise[plot]" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize("argv", ["denoise nile --plot a.svg", "demo --output a.svg"])
def test_plot_stays_when_the_reader_goes(run, tmp_path, monkeypatch, argv):
    pytest.importorskip("matplotlib")
    readable, writable = os.pipe()
    os.close(readable)
    with open(writable, "w", buffering=1) as out, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        assert main(argv.split()) == 141
    assert "</svg>" in (tmp_path / "a.svg").read_text()
