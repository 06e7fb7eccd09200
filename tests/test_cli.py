import csv
import gzip
import io
import itertools
import os
import re
import sys
import tracemalloc

import numpy as np
import pytest

from sktvdenoise import OnlineTVDenoiser, __version__
from sktvdenoise.__main__ import main
from sktvdenoise.datasets import load_nile, make_signal
from sktvdenoise.metrics import dynamic_regret, path_variation, tv_oracle

NILE = load_nile().target


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
    status, out, _ = run("denoise", "-", "--interval", stdin=Trickle(chunks))
    _, *rows = table_of(out)
    assert status == 0
    assert_denoised([row[:-2] for row in rows], y)
    X = np.arange(len(y))
    _, std = OnlineTVDenoiser().partial_fit_predict(X, y, return_std=True)
    low, high = np.array([row[-2:] for row in rows], dtype=float).T
    np.testing.assert_allclose(high - low, 2 * 1.6448536 * std, rtol=1e-6)


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
