"""Bad input, closed streams and full disks: one line, status 2, nothing written."""

import gzip
import io
import os
import signal
import sys

import pytest

from sktvdenoise import OnlineTVDenoiser
from sktvdenoise._csv import open_output

posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


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


# Streams and signals of the process


@pytest.mark.parametrize("command", ["denoise", "regret"])
def test_closed_standard_input(run, monkeypatch, command):
    monkeypatch.setattr(sys, "stdin", None)
    message = "sktvdenoise: error: standard input is closed\n"
    assert run(command, "-") == (2, "", message)


@pytest.mark.parametrize("argv", [["denoise", "nile"], ["demo"], ["--help"]])
def test_closed_standard_output(run, monkeypatch, argv):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert err == "sktvdenoise: error: standard output is closed\n"


def test_closed_standard_error(run, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", None)
        assert run("denoise", "none.csv") == (2, "", "")
        status, out, _ = run("denoise", "a.csv")
    assert (status, out) == (0, "a,b,prediction,estimate\n1,2,0.0,2.0\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    "argv",
    [
        ["denoise", "nile"],
        ["denoise", "-"],
        ["denoise", "-", "--plot", "a.svg"],
        ["regret", "nile"],
        ["demo"],
        ["--help"],
        [],
    ],
)
def test_full_disk(run, tmp_path, monkeypatch, argv):
    pytest.importorskip("matplotlib")
    with open("/dev/full", "w") as full:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", full)
            status, _, err = run(*argv, stdin=b"1\n")
        # What the interpreter does at its end.
        full.flush()
    assert status == 2
    assert err == (
        "sktvdenoise: error: cannot write the output: No space left on device\n"
    )
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_behind_standard_error(run, monkeypatch):
    with open("/dev/full", "w", buffering=1) as full:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", full)
            assert run("denoise", "none.csv")[0] == 2
        full.flush()


@pytest.mark.parametrize("command", ["denoise", "regret"])
def test_text_is_utf8_whatever_the_locale(run, monkeypatch, command):
    text = "id,flow é\na,1\n".encode()
    out = run(command, "-", stdin=text)[1].encode()
    written = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
        status = run(command, "-", stdin=text)[0]
        assert (status, written.getvalue()) == (0, out)
    assert "é".encode() in out


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
def test_a_second_signal_does_not_disturb_the_end(run, tmp_path, monkeypatch):
    def signalled(*args, **kwargs):
        signal.raise_signal(signal.SIGTERM)

    def unlink(path):
        signalled()
        remove(path)

    remove = os.unlink
    monkeypatch.setattr(OnlineTVDenoiser, "partial_fit_predict", signalled)
    monkeypatch.setattr("sktvdenoise._csv.os.unlink", unlink)
    assert run("denoise", "nile", "--output", "a.csv") == (143, "", "")
    assert not list(tmp_path.iterdir())


def test_files_in_the_making_have_names_of_their_own(run, tmp_path):
    # One killed earlier may have left its own, and process numbers come again.
    with open_output(str(tmp_path / "a.csv")):
        assert run("denoise", "nile", "--output", "a.csv") == (0, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
