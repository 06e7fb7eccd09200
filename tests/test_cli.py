import csv
import gzip
import io
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest

from sktvdenoise import OnlineTVDenoiser, __version__
from sktvdenoise.__main__ import main
from sktvdenoise.datasets import load_nile, make_signal
from sktvdenoise.metrics import dynamic_regret, path_variation, tv_oracle

NILE = load_nile().target


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run the command line in an empty folder: status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*argv, stdin=None):
        if stdin is not None:
            stream = stdin if isinstance(stdin, io.RawIOBase) else io.BytesIO(stdin)
            stdin = io.TextIOWrapper(io.BufferedReader(stream))
            monkeypatch.setattr(sys, "stdin", stdin)
        status = main([str(arg) for arg in argv])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def y():
    return make_signal("step", 300, random_state=0)[0]


def lines_of(*columns, header=None):
    rows = [",".join(map(str, row)) for row in zip(*columns)]
    return "\n".join([header, *rows] if header else rows) + "\n"


def table_of(text, delimiter=","):
    return [list(row) for row in csv.reader(io.StringIO(text), delimiter=delimiter)]


def denoised(y, **params):
    model = OnlineTVDenoiser(**params)
    predictions = model.partial_fit_predict(np.arange(len(y)), y)
    return predictions, model.values_


def assert_denoised(rows, y, **params):
    """The last two columns are the predictions and estimates of y, bit for bit."""
    written = np.array([row[-2:] for row in rows], dtype=float)
    np.testing.assert_array_equal(written.T, denoised(np.asarray(y), **params))


# denoise: what it writes


def test_nile_is_denoised_as_by_the_estimator(run):
    status, out, err = run("denoise", "nile")
    names, *rows = table_of(out)
    assert (status, err) == (0, "")
    assert names == ["year", "volume", "prediction", "estimate"]
    assert [row[0] for row in rows] == [str(year) for year in range(1871, 1971)]
    assert [row[1] for row in rows] == [f"{flow:g}" for flow in NILE]
    assert_denoised(rows, NILE)


@pytest.mark.parametrize("rate", ["theory", "mixable", 0.02])
def test_learning_rate(run, rate):
    out = run("denoise", "nile", "--learning-rate", rate)[1]
    assert_denoised(table_of(out)[1:], NILE, learning_rate=rate)
    assert out != run("denoise", "nile")[1]


def test_cells_of_the_row_are_kept_as_they_were(run, tmp_path):
    text = 'name,a,"b, c"\n" x",1.50,2e0\n"y ""z""",+3,04\n'
    (tmp_path / "a.csv").write_text(text)
    names, *rows = table_of(run("denoise", "a.csv", "--column", "a")[1])
    assert names == ["name", "a", "b, c", "prediction", "estimate"]
    assert [row[:3] for row in rows] == [[" x", "1.50", "2e0"], ['y "z"', "+3", "04"]]
    assert_denoised(rows, [1.5, 3])


@pytest.mark.parametrize(
    ("column", "index"), [([], 3), (["b"], 3), (["a"], 1), (["1"], 1), (["3"], 3)]
)
def test_column_by_name_or_number_or_the_last_numeric(run, tmp_path, column, index):
    text = "time,a,note,b,comment\n9:00,1,x,5,y\n9:01,2,x,7,3\n"
    (tmp_path / "a.csv").write_text(text)
    argv = ["--column", *column] if column else []
    rows = table_of(run("denoise", "a.csv", *argv)[1])[1:]
    assert_denoised(rows, [float(row[index]) for row in rows])


@pytest.mark.parametrize(
    ("text", "names", "values"),
    [
        ("1\n2\n", ["value"], [1, 2]),
        ("x\n1\n2\n", ["x"], [1, 2]),
        ("1,9:00\n2,9:01\n", ["value", "column_1"], [1, 2]),
        ("9:00,1\n9:01,2\n", ["column_0", "value"], [1, 2]),
        ("nan\n3\n", ["value"], [np.nan, 3]),
        ("NA\n3\n", ["value"], [np.nan, 3]),
        (",x\na,1\n", ["", "x"], [1]),
    ],
)
def test_header_is_a_first_line_without_numbers(run, tmp_path, text, names, values):
    (tmp_path / "a.csv").write_text(text)
    written, *rows = table_of(run("denoise", "a.csv", "--missing", "skip")[1])
    assert written == [*names, "prediction", "estimate"]
    assert_denoised(rows, values, missing="skip")


def test_header_of_numbers(run, tmp_path):
    (tmp_path / "a.csv").write_text("day,2019,2020\nmon,1,5\ntue,2,7\n")
    for argv in (["--header"], ["--column", "2020"]):
        names, *rows = table_of(run("denoise", "a.csv", *argv)[1])
        assert names[:3] == ["day", "2019", "2020"]
        assert_denoised(rows, [5, 7])
    rows = table_of(run("denoise", "a.csv", "--no-header")[1])[1:]
    assert_denoised(rows, [2020, 5, 7])


@pytest.mark.parametrize(
    ("text", "argv", "note"),
    [
        ("a,b\n1,2\n3,4\n", [], "the column is 'b'; --column names another"),
        ("1,2\n3,4\n", [], "the column is 1, and the first line is no header; "),
        ("id,2020\na,1\n", [], "the column is 1, and the first line is no header; "),
        ("a,b\n1,2\n3,4\n", ["--column", "b"], ""),
        ("a\n1\n2\n", [], ""),
    ],
)
def test_column_that_was_chosen_is_named(run, tmp_path, text, argv, note):
    (tmp_path / "a.csv").write_text(text)
    for command in ("denoise", "regret"):
        for file in ("a.csv", "-"):
            err = run(command, file, *argv, stdin=text.encode())[2]
            assert err.count("\n") == bool(note) and note in err


@pytest.mark.parametrize("hole", ["NA", "", "nan"])
def test_missing_first_cell_is_that_of_a_number(run, tmp_path, hole):
    (tmp_path / "a.csv").write_text(f"a,b,\n1,{hole},\n1,2,\n")
    rows = table_of(run("denoise", "a.csv", "--missing", "skip")[1])[1:]
    assert_denoised(rows, [np.nan, 2], missing="skip")
    status, _, err = run("denoise", "a.csv")
    assert status == 2
    assert f"line 2: {hole!r} in column 'b' is a missing value" in err


@pytest.mark.parametrize(
    "text",
    ["1;2,5\n", "t;v\n1;2,5\n", "2,5;3,5\n", "1\t1.234,5\n", 'a,"1,234"\n'],
)
def test_commas_in_numbers_are_refused(run, tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    status, out, err = run("denoise", "a.csv")
    assert (status, out) == (2, "")
    assert "is not a number: its only separator may be a decimal point" in err


def test_what_was_denoised_is_not_denoised_again(run, tmp_path):
    (tmp_path / "a.csv").write_text("v\n1\n2\n")
    run("denoise", "a.csv", "--interval", "--output", "b.csv")
    for argv in ([], ["--column", "v"]):
        status, out, err = run("denoise", "b.csv", *argv)
        assert (status, out) == (2, "")
        assert "b.csv has a column 'prediction': rename it" in err
    (tmp_path / "c.csv").write_text("v,low\n1,2\n")
    assert run("denoise", "c.csv", "--column", "v")[0] == 0
    assert run("denoise", "c.csv", "--column", "v", "--interval")[0] == 2


def test_interval(run):
    names, *rows = table_of(run("denoise", "nile", "--interval")[1])
    assert names[2:] == ["prediction", "estimate", "low", "high"]
    cells = np.array([row[2:] for row in rows], dtype=float)
    np.testing.assert_array_equal(cells[:, :2].T, denoised(NILE))
    model = OnlineTVDenoiser()
    for year, flow in enumerate(NILE):
        if year > 0:
            expected = np.ravel(model.predict_interval([year], coverage=0.9))
            np.testing.assert_allclose(cells[year, 2:], expected)
        model.partial_fit([year], [flow])
    assert cells[0, 2:].tolist() == [-np.inf, np.inf]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiter_is_found_and_kept(run, tmp_path, delimiter):
    text = lines_of(["a", 1, 2], ["b", 3, 5]).replace(",", delimiter)
    (tmp_path / "a.csv").write_text(text)
    names, *rows = table_of(run("denoise", "a.csv")[1], delimiter)
    assert names == ["a", "b", "prediction", "estimate"]
    assert_denoised(rows, [3, 5])


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbft,v\r\na,1\r\nb,2\r\n",
        b"\n\nt,v\n\na,1\n  \nb,2",
        b't,"v"\n"a","1"\n"b", 2 \n\n',
    ],
)
def test_ways_to_write_the_same_text(run, tmp_path, content):
    (tmp_path / "a.csv").write_bytes(content)
    names, *rows = table_of(run("denoise", "a.csv")[1])
    assert names == ["t", "v", "prediction", "estimate"]
    assert_denoised(rows, [1, 2])


def test_quoted_line_breaks(run, tmp_path):
    (tmp_path / "a.csv").write_text('note,v\n"two\nlines",1\n"\n",3\n')
    rows = table_of(run("denoise", "a.csv")[1])[1:]
    assert [row[0] for row in rows] == ["two\nlines", "\n"]
    assert_denoised(rows, [1, 3])


@pytest.mark.parametrize("hole", ["", "NA", "nan", " null ", "None"])
def test_missing_values_are_passed_over(run, tmp_path, hole):
    (tmp_path / "a.csv").write_text(f"t,v\n1,5\n2,{hole}\n3,7\n4,9\n")
    rows = table_of(run("denoise", "a.csv", "--column", "v", "--missing", "skip")[1])
    assert_denoised(rows[1:], [5, np.nan, 7, 9], missing="skip")
    assert rows[2][1] == hole


def test_compressed_files(run, tmp_path, y):
    text = lines_of(y, header="v")
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    out = run("denoise", "a.csv")[1]
    assert run("denoise", "a.csv.gz", "--output", "b.csv.gz") == (0, "", "")
    assert gzip.decompress((tmp_path / "b.csv.gz").read_bytes()).decode() == out


def test_output_file_is_replaced(run, tmp_path):
    out = run("denoise", "nile")[1]
    target = tmp_path / "out.csv"
    target.write_text("old")
    (tmp_path / "link.csv").symlink_to(target)
    target.chmod(0o640)
    assert run("denoise", "nile", "--output", "link.csv") == (0, "", "")
    assert target.read_text() == out
    assert target.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link.csv").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "out.csv"]


def test_file_can_be_denoised_in_place(run, tmp_path, y):
    (tmp_path / "a.csv").write_text(lines_of(y, header="v"))
    out = run("denoise", "a.csv")[1]
    run("denoise", "a.csv", "--output", "a.csv")
    assert (tmp_path / "a.csv").read_text() == out


def test_progress_is_shown_on_a_terminal(run, tmp_path, monkeypatch):
    y = make_signal("walk", 20_000, random_state=0)[0]
    (tmp_path / "a.csv").write_text(lines_of(y))
    quiet = run("denoise", "a.csv")
    assert quiet[2] == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("time.monotonic", itertools.count().__next__)
    status, out, err = run("denoise", "a.csv")
    assert (status, out) == quiet[:2]
    shares = [int(share) for share in re.findall(r"\] +(\d+)%", err)]
    assert shares == sorted(shares) and len(shares) > 2 and shares[-1] == 100
    assert err.endswith(" \r")


# denoise -: the filter


class Trickle(io.RawIOBase):
    """A stream that gives its chunks one read at a time."""

    def __init__(self, chunks):
        self.chunks = iter(chunks)

    def readable(self):
        return True

    def readinto(self, buffer):
        chunk = next(self.chunks, b"")
        buffer[: len(chunk)] = chunk
        return len(chunk)


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_filter_gives_the_same_however_lines_arrive(run, y, size):
    text = lines_of(range(len(y)), y, header="t,v").encode()
    chunks = [text[i : i + size] for i in range(0, len(text), size)]
    status, out, _ = run("denoise", "-", stdin=Trickle(chunks))
    assert status == 0
    assert_denoised(table_of(out)[1:], y)


def test_filter_answers_a_line_with_a_line(run, y):
    out = run("denoise", "-", stdin=lines_of(y).encode())[1]
    assert len(out.splitlines()) == len(y)
    assert_denoised(table_of(out), y)
    out = run("denoise", "-", stdin=lines_of(y, header="v").encode())[1]
    assert out.splitlines()[0] == "v,prediction,estimate"


def test_memory_of_the_filter_does_not_grow(monkeypatch):
    def peak(n_chunks):
        chunks = (b"1\n2\n4\n" * 20 for _ in range(n_chunks))
        stdin = io.TextIOWrapper(io.BufferedReader(Trickle(chunks)))
        monkeypatch.setattr(sys, "stdin", stdin)
        tracemalloc.start()
        with open(os.devnull, "w") as out:
            monkeypatch.setattr(sys, "stdout", out)
            assert main(["denoise", "-", "--interval"]) == 0
        monkeypatch.undo()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(20)
    assert peak(400) < 1.2 * peak(20)


def test_filter_answers_lines_before_a_bad_one(run):
    status, out, err = run("denoise", "-", stdin=b"1\n3\nx\n5\n")
    assert_denoised(table_of(out), [1, 3])
    assert status == 2
    assert "standard input, line 3" in err


def test_filter_into_a_file_is_all_or_nothing(run, tmp_path):
    run("denoise", "-", "--output", "a.csv", stdin=b"1\n3\n")
    names, *rows = table_of((tmp_path / "a.csv").read_text())
    assert names == ["value", "prediction", "estimate"]
    assert_denoised(rows, [1, 3])
    assert run("denoise", "-", "--output", "b.csv", stdin=b"1\nx\n")[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


# Bad input: one line, status 2, nothing written


@pytest.mark.parametrize(
    ("content", "argv", "words"),
    [
        ("", [], "is empty"),
        ("\n \n", [], "is empty"),
        ('""\n', [], "is empty"),
        ("t,v\n", [], "no rows"),
        ("t,v\n1,2\n3,x\n", [], "line 3: 'x' in column 'v' is not a number"),
        ("\n1\n\n2\nabc\n", [], "line 5: 'abc' is not a number"),
        ("1,2\n3,1_0\n", [], "line 2: '1_0' in column 1 is not a number"),
        ("1\n-inf\n", [], "line 2: '-inf' is not finite"),
        ("1\n1e300\n", [], "line 2: '1e300' is too large"),
        ("1\nnan\n", [], "line 2: 'nan' is a missing value; --missing skip"),
        ("t,v\na,1\nb,\n", [], "line 3: '' in column 'v' is a missing value"),
        ("1,2\n3\n", [], "line 2: 1 cell, but the first line has 2"),
        ("v\n1\n2,3\n", [], "line 3: 2 cells, but the first line has 1"),
        ("1," + "9" * 50 + "x\n", ["--column", "1"], "'" + "9" * 37 + "...'"),
        ("t,v\na,1\n", ["--column", "w"], "no column 'w': it has columns t, v"),
        ("t,v\na,1\n", ["--column", "2"], "no column '2': it has columns t, v"),
        ("1,2\n", ["--column", "v"], "no column 'v': it has no header"),
        ("v,v\n1,2\n", ["--column", "v"], "several columns 'v'"),
        ("a,b\nx,y\n", [], "line 2: no cell is a number"),
        ('v,w\n1,2\n3,"4\n5,6\n', [], "line 4: not CSV"),
        (b"v\n1\n\xff\xfe\n", [], "not UTF-8 text (line 3)"),
        (b"v\n1\n\0\n", [], "not text (line 3 has a zero byte)"),
        (b"1" * (1 << 21), [], "line 1 is longer"),
    ],
)
def test_bad_content(run, tmp_path, content, argv, words):
    content = content.encode() if isinstance(content, str) else content
    (tmp_path / "bad.csv").write_bytes(content)
    (tmp_path / "kept.csv").write_text("old")
    for output in ([], ["--output", "new.csv"], ["--output", "kept.csv"]):
        status, out, err = run("denoise", "bad.csv", *argv, *output)
        assert (status, out) == (2, "")
        *notes, err = err.splitlines()
        assert err.startswith("sktvdenoise: error: ")
        assert "bad.csv" in err and words in err
        # Only which column was chosen is said before, where a row had been read.
        assert len(notes) <= ("," in str(content) and not argv)
    assert (tmp_path / "kept.csv").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.csv", "kept.csv"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["denoise", "none.csv"], "cannot read none.csv: No such file"),
        (["denoise", "."], "cannot read .: "),
        (["denoise", "bad.gz"], "cannot read bad.gz: "),
        (["denoise", "short.gz"], "cannot read short.gz: "),
        (["denoise", "nile", "--output", "no/a.csv"], "cannot write no/a.csv: No such"),
        (["denoise", "nile", "--output", "."], "cannot write .: "),
        (["denoise", "nile", "--output", "bad.gz/a"], "cannot write bad.gz/a: "),
        (["denoise", "nile", "--output", "a.png", "--plot", "./a.png"], "same file"),
        (["regret", "none.csv"], "cannot read none.csv"),
        (["regret", "-"], "standard input is empty"),
        (["denoise", "-"], "standard input is empty"),
    ],
)
def test_bad_files(run, tmp_path, argv, words):
    (tmp_path / "bad.gz").write_bytes(b"not compressed")
    (tmp_path / "short.gz").write_bytes(gzip.compress(b"1\n2\n")[:-6])
    before = sorted(tmp_path.iterdir())
    status, out, err = run(*argv, stdin=b"")
    assert (status, out) == (2, "")
    assert words in err and err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "argv",
    [
        ["denoise"],
        ["denoise", "nile", "--learning-rate", "0"],
        ["denoise", "nile", "--learning-rate", "fast"],
        ["denoise", "nile", "--missing", "drop"],
        ["regret", "nile", "--tv-budget", "-1"],
        ["regret", "nile", "--tv-budget", "nan"],
        ["regret", "nile", "--tv-budget", "1,,2"],
        ["denoise", ""],
        ["denoise", "nile", "--output", ""],
        ["denoise", "nile", "--plot", ""],
        ["demo", "--output", ""],
        ["smooth", "nile"],
    ],
)
def test_bad_options(run, capsys, argv):
    with pytest.raises(SystemExit) as stop:
        run(*argv)
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and "error: " in err


def test_interruption_leaves_nothing(run, tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(OnlineTVDenoiser, "partial_fit_predict", interrupted)
    assert run("denoise", "nile", "--output", "a.csv") == (130, "", "")
    assert not list(tmp_path.iterdir())


# Pictures


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
    names, *rows = table_of(text)
    values = [float(row[names.index("v")]) for row in rows]
    np.testing.assert_array_equal(display.observations, values)
    predictions, _ = denoised(values)
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
        ("day,v\n0001-01-01,5\n9999-12-31,7\n", "row"),
        ("day,v\n1000-01-01,5\n8999-12-31,7\n", "day"),
        ("t,v\n1,NA\n2,NA\n", "t"),
    ],
)
def test_plot_of_anything(run, tmp_path, monkeypatch, text, xlabel):
    figure = pytest.importorskip("matplotlib.figure").Figure
    drawn = []
    savefig = figure.savefig

    def save(self, *args, **kwargs):
        drawn.append(self.axes[0].xaxis.label._preprocess_math(xlabel_of(self))[0])
        savefig(self, *args, **kwargs)

    def xlabel_of(fig):
        return fig.axes[0].get_xlabel()

    monkeypatch.setattr(figure, "savefig", save)
    (tmp_path / "a.csv").write_text(text)
    argv = ["--column", "v", "--missing", "skip", "--plot", "a.png"]
    status, _, err = run("denoise", "a.csv", *argv)
    assert (status, err) == (0, "")
    assert drawn == [xlabel]


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
    expected = OnlineTVDenoiser().fit(np.arange(len(NILE)), NILE).breakpoints_
    assert shown == [list(expected)] * 2


def test_plot_without_matplotlib(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, err = run("denoise", "nile", "--plot", "a.png", "--output", "a.csv")
    assert (status, out) == (2, "")
    assert "pip install sktvdenoise[plot]" in err
    assert not list(tmp_path.iterdir())


# regret


def figures(text):
    """Rows of the printed table as numbers."""
    lines = text[text.index("TV budget") :].split("\n\n")[0].splitlines()[1:]
    return np.array([line.replace(",", "").split() for line in lines], dtype=float)


def test_regret_of_the_denoiser(run, y, tmp_path):
    (tmp_path / "a.csv").write_text(lines_of(y))
    status, out, _ = run("regret", "a.csv", "--tv-budget", "20,0,5,20")
    predictions, _ = denoised(y)
    budgets = [0.0, 5.0, 20.0]
    expected = [
        [
            budget,
            tv_oracle(y, budget).loss,
            dynamic_regret(y, predictions, tv_budget=budget),
        ]
        for budget in budgets
    ]
    assert status == 0
    np.testing.assert_allclose(figures(out), expected, rtol=1e-5, atol=1e-9)


def test_regret_of_given_predictions(run, y, tmp_path):
    given = np.append(0.0, y[:-1])
    (tmp_path / "a.csv").write_text(lines_of(given, y, header="last,v"))
    argv = ["--column", "v", "--prediction", "last", "--tv-budget", "0,7"]
    out = run("regret", "a.csv", *argv)[1]
    expected = [dynamic_regret(y, given, tv_budget=budget) for budget in (0, 7)]
    np.testing.assert_allclose(figures(out)[:, 2], expected, rtol=1e-5)


def test_regret_of_what_denoise_wrote(run, y, tmp_path):
    (tmp_path / "a.csv").write_text(lines_of(y, header="v"))
    run("denoise", "a.csv", "--output", "b.csv")
    direct = figures(run("regret", "a.csv")[1])
    argv = ["--column", "v", "--prediction", "prediction"]
    np.testing.assert_array_equal(direct, figures(run("regret", "b.csv", *argv)[1]))
    shares = direct[:, 0] / path_variation(y)
    np.testing.assert_allclose(shares, [0, 0.001, 0.01, 0.1, 1], rtol=1e-5)
    assert (np.diff(direct[:, 2]) >= 0).all()


def test_regret_passes_over_missing_values(run, y, tmp_path):
    holes = y.copy()
    holes[[3, 50, 51]] = np.nan
    predictions, _ = denoised(holes, missing="skip")
    seen = ~np.isnan(holes)
    (tmp_path / "a.csv").write_text(lines_of(holes, header="v"))
    out = run("regret", "a.csv", "--missing", "skip", "--tv-budget", "9")[1]
    expected = dynamic_regret(holes[seen], predictions[seen], tv_budget=9)
    np.testing.assert_allclose(figures(out)[0, 2], expected, rtol=1e-5)
    assert out.startswith("297 values")
    (tmp_path / "b.csv").write_text("v\nnan\nnan\n")
    status, _, err = run("regret", "b.csv", "--missing", "skip")
    assert status == 2 and "b.csv has no row" in err
    err = run("regret", "-", "--missing", "skip", stdin=b"v\nnan\nnan\n")[2]
    assert "standard input has no row" in err


def test_regret_says_what_is_behind_its_figures(run, tmp_path):
    (tmp_path / "a.csv").write_text("v,p\n3,3\n3,3\n")
    argv = ["regret", "a.csv", "--column", "v"]
    out = run(*argv)[1]
    assert "(9 of it for the first, predicted as 0)" in out
    assert "negative where" in out
    # Budgets that are all shares of nothing are one.
    np.testing.assert_array_equal(figures(out), [[0, 0, 9]])
    assert "of it for the first" not in run(*argv, "--prediction", "p")[1]


def test_regret_options_leave_the_file_alone(run):
    out = run("regret", "--tv-budget", "0,5", "nile")[1]
    assert out == run("regret", "nile", "--tv-budget", "0,5")[1]


# demo, help


def test_demo(run, tmp_path):
    pytest.importorskip("matplotlib")
    status, out, err = run("demo")
    assert (status, err) == (0, "")
    assert (tmp_path / "nile.png").read_bytes().startswith(b"\x89PNG")
    assert "nile.png" in out

    predictions, _ = denoised(NILE)
    last = np.append(0.0, NILE[:-1])
    table = figures(out)
    assert table[0, 0] == 0 and 250 in table[:, 0]
    for budget, loss, online, naive in table:
        np.testing.assert_allclose(tv_oracle(NILE, budget).loss, loss, rtol=1e-5)
        for x, regret in ((predictions, online), (last, naive)):
            exact = dynamic_regret(NILE, x, tv_budget=budget)
            np.testing.assert_allclose(regret, exact, rtol=1e-5)
    assert max(len(line) for line in out.splitlines()) <= 88
    assert "1899" in out

    # What was there already is not lost, unless it is named.
    (tmp_path / "nile.png").write_text("mine")
    status, out, err = run("demo")
    assert (status, err) == (0, "") and "--output nile.png" in out
    assert (tmp_path / "nile.png").read_text() == "mine"
    run("demo", "--output", "nile.png")
    assert (tmp_path / "nile.png").read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, err = run("demo")
    assert (status, err) == (0, "")
    assert "TV budget" in out and "pip install sktvdenoise[plot]" in out
    assert not list(tmp_path.iterdir())


def test_help_and_version(run, capsys):
    status, out, _ = run()
    assert status == 0
    for command in ("demo", "denoise", "regret"):
        assert command in out
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0
        assert "usage: sktvdenoise" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.split() == ["sktvdenoise", __version__]


# Real processes

posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")

# A process started in the background may ignore Ctrl-C, and hand that down.
HEARS_SIGNALS = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
for name in ("SIGTERM", "SIGHUP"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
runpy.run_module("sktvdenoise", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def environment():
    """The environment, without what would flush the streams of Python itself."""
    kept = dict(os.environ)
    kept.pop("PYTHONUNBUFFERED", None)
    return kept


@pytest.fixture
def start(environment):
    """Start the command line as a process; it ends with the test."""
    processes = []

    def start(*argv):
        process = subprocess.Popen(
            [sys.executable, "-c", HEARS_SIGNALS, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        watchdog = threading.Timer(120, process.kill)
        watchdog.start()
        processes.append((process, watchdog))
        return process

    yield start
    for process, watchdog in processes:
        watchdog.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


@pytest.fixture
def filter_process(start):
    return start("denoise", "-")


@pytest.fixture
def shell(environment, tmp_path):
    """Run a line of shell in which $S is the command line."""

    def shell(line, **variables):
        return subprocess.run(
            ["sh", "-c", line.replace("$S", f'"{sys.executable}" -m sktvdenoise')],
            env=environment | variables,
            cwd=tmp_path,
            capture_output=True,
            timeout=120,
        )

    return shell


def ask(process, line):
    process.stdin.write(line)
    process.stdin.flush()
    return process.stdout.readline()


def test_filter_process_answers_each_line_at_once(filter_process):
    # A blank line with a number must not hold back the answer to the number.
    asked = ["load\n", "1.5\n", "2.5\n\n", "4.0\n"]
    answers = [ask(filter_process, line) for line in asked]
    assert answers[0] == "load,prediction,estimate\n"
    assert_denoised(table_of("".join(answers[1:])), [1.5, 2.5, 4.0])
    filter_process.stdin.write("7")
    out, err = filter_process.communicate()
    assert out.startswith("7,") and err == ""
    assert filter_process.returncode == 0


@posix
def test_filter_process_ends_quietly_on_ctrl_c(filter_process):
    assert ask(filter_process, "1\n") == "1,0.0,1.0\n"
    filter_process.send_signal(signal.SIGINT)
    out, err = filter_process.communicate()
    assert (out, err, filter_process.returncode) == ("", "", 130)


@posix
def test_filter_process_ends_quietly_when_its_reader_goes(filter_process):
    assert ask(filter_process, "1\n") == "1,0.0,1.0\n"
    filter_process.stdout.close()
    filter_process.stdin.write("2\n")
    filter_process.stdin.close()
    assert filter_process.stderr.read() == ""
    assert filter_process.wait() == 141


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_leave_no_file_behind(start, tmp_path, name):
    number = getattr(signal, name)
    process = start("denoise", "-", "--output", str(tmp_path / "a.csv"))
    process.stdin.write("1\n")
    process.stdin.flush()
    while not list(tmp_path.iterdir()):
        assert process.poll() is None
        time.sleep(0.01)
    # As timeout(1) does, which signals the process and then its group.
    process.send_signal(number)
    process.send_signal(number)
    out, err = process.communicate()
    assert (out, err) == ("", "")
    assert process.returncode in (128 + number, -number)
    assert not list(tmp_path.iterdir())


@posix
def test_a_signal_that_is_ignored_stays_ignored(run):
    def handlers():
        return [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]

    before = handlers()
    seen = []

    class Stream(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            seen.append(handlers())
            return 0

    ignored = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        run("denoise", "-", stdin=Stream())
    finally:
        signal.signal(signal.SIGTERM, ignored)
    assert handlers() == before
    assert seen[0][0] not in before and seen[0][1] == signal.SIG_IGN


@posix
def test_leftovers_of_others_do_not_matter(shell, tmp_path):
    done = shell("touch .a.csv.$$.part; exec $S denoise nile --output a.csv")
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "a.csv").stat().st_size > 0


@posix
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("$S denoise - <&-", b"standard input is closed"),
        ("$S denoise nile >&-", b"standard output is closed"),
        ("$S demo >&-", b"standard output is closed"),
        ("$S denoise none.csv 2>&-", b""),
        ("$S denoise none.csv >&- 2>&-", b""),
        ("MPLBACKEND=nope $S denoise nile --plot a.png", b"backend: 'nope'"),
    ],
)
def test_closed_streams_and_wrong_settings(shell, line, message):
    pytest.importorskip("matplotlib")
    done = shell(line)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr and done.stderr.count(b"\n") == bool(message)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    "argv",
    ["denoise nile", "denoise - --plot a.png", "regret nile", "demo", "--help", ""],
)
def test_full_disk_is_one_line(shell, argv):
    done = shell(f"echo 1 | $S {argv} > /dev/full")
    message = b"sktvdenoise: error: cannot write the output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, message)
    assert shell("$S denoise none.csv 2> /dev/full").returncode == 2


@posix
def test_text_is_utf8_whatever_the_locale(shell):
    line = "printf 'é,v\\n1,2\\n' | $S denoise - --column v"
    done = shell(line, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines() == [
        "é,v,prediction,estimate",
        "1,2,0.0,2.0",
    ]


@posix
def test_matplotlib_says_nothing(shell):
    pytest.importorskip("matplotlib")
    line = "printf '流量\\n1\\n2\\n' | $S denoise - --plot a.png"
    done = shell(line, MPLCONFIGDIR="/dev/null/none")
    assert (done.returncode, done.stderr) == (0, b"")


@posix
def test_plot_stays_when_the_reader_goes(shell, tmp_path):
    pytest.importorskip("matplotlib")
    np.savetxt(tmp_path / "a.csv", np.arange(20_000))
    shell("$S denoise a.csv --plot a.png | head -1")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_module_runs_as_a_program():
    program = [sys.executable, "-m", "sktvdenoise", "denoise", "nile"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert_denoised(table_of(done.stdout)[1:], NILE)
    program[-1] = "no such file"
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "no such file" in done.stderr
