"""The command line as a process of its own."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

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


def test_filter_process_answers_each_line_at_once(filter_process, run):
    # A blank line with a number must not hold back the answer to the number.
    asked = ["load\n", "1.5\n", "2.5\n\n", "4.0\n"]
    answers = [ask(filter_process, line) for line in asked]
    assert "".join(answers) == run("denoise", "-", stdin="".join(asked).encode())[1]
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


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_process(shell):
    done = shell("echo 1 | $S denoise - > /dev/full")
    message = b"sktvdenoise: error: cannot write the output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, message)


@posix
@pytest.mark.parametrize(
    ("setting", "status", "message"),
    [
        ({"MPLCONFIGDIR": "/dev/null/none"}, 0, b""),
        ({"MPLBACKEND": "nope"}, 2, b"error: cannot load matplotlib: Key backend:"),
    ],
)
def test_settings_of_matplotlib(shell, setting, status, message):
    pytest.importorskip("matplotlib")
    done = shell("$S denoise nile --plot a.png > a.csv", **setting)
    assert done.returncode == status
    assert message in done.stderr and done.stderr.count(b"\n") == bool(message)


def test_module_runs_as_a_program(run):
    program = [sys.executable, "-m", "sktvdenoise", "denoise", "nile"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout == run("denoise", "nile")[1]
    program[-1] = "no such file"
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "no such file" in done.stderr
