"""What a program owes its shell: standard streams, signals and exit statuses."""

import contextlib
import os
import signal
import sys
import threading
import time

_ENDING = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)
]


def say(text, end="\n"):
    """Print on standard error, if there is one."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(text, end=end, file=sys.stderr)
        settle(sys.stderr)


def settle(stream):
    """Flush a stream; if it can't be written to, let what it still holds vanish.

    The interpreter flushes standard streams once more when it ends, and complains
    if that fails.
    """
    try:
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError), open(os.devnull, "wb") as sink:
            os.dup2(sink.fileno(), stream.fileno())


def figure(x):
    """A number with six digits, or with all before the point."""
    return f"{x:,.0f}" if 1e6 <= abs(x) < 1e15 else f"{x:,.6g}"


def aligned(lines, *, n_left=0):
    """Lines of cells as text, the first `n_left` columns flush left."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join(
        "   ".join(
            cell.ljust(width) if i < n_left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        )
        for line in lines
    )


@contextlib.contextmanager
def progress_bar():
    """A function that shows, at most ten times a second, the share that is done."""
    shown = time.monotonic()

    def show(share):
        nonlocal shown
        if time.monotonic() - shown > 0.1:
            shown = time.monotonic()
            bar = "#" * int(30 * share)
            say(f"\r[{bar:<30}] {share:4.0%}", end="")

    try:
        yield show
    finally:
        say("\r" + " " * 37 + "\r", end="")


@contextlib.contextmanager
def signals_raise():
    """Within the block a signal that would end the program raises KeyboardInterrupt.

    Its argument is the number of the signal. Those that follow are ignored: what
    the block cleans up is not disturbed. A signal that was ignored before, as by
    nohup, or has a handler of its own, keeps it.
    """
    defaults = (signal.SIG_DFL, signal.default_int_handler)
    handlers = {}

    def end(number, frame):
        for caught in handlers:
            signal.signal(caught, signal.SIG_IGN)
        raise KeyboardInterrupt(number)

    try:
        # Only the main thread may set handlers, and only it receives signals.
        if threading.current_thread() is threading.main_thread():
            for number in _ENDING:
                if signal.getsignal(number) in defaults:
                    handlers[number] = signal.signal(number, end)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
