"""The command line: ``python -m sktvdenoise``, or ``sktvdenoise``."""

import argparse
import contextlib
import csv
import io
import math
import os
import shutil
import sys
import tempfile
import time
from datetime import datetime

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sktvdenoise import __version__
from sktvdenoise._csv import InputError, NumberColumns, open_input, open_output, reason
from sktvdenoise.datasets import load_nile
from sktvdenoise.metrics import path_variation, tv_oracle
from sktvdenoise.online import OnlineTVDenoiser
from sktvdenoise.plotting import DenoisingDisplay

_FAILED = 2  # wrong options or input
_INTERRUPTED = 130  # Ctrl-C, and the next when a reader went away: as the shell
_BROKEN_PIPE = 141  # reports a program that SIGINT or SIGPIPE ended

_FILE_HELP = """\
FILE is CSV text: cells separated by commas, semicolons or tabs, with a header or
without; a name that ends in .gz is decompressed. "-" is standard input, "nile" the
flow of the Nile that comes with the package ("./nile" is a file of that name)."""

_DENOISE_HELP = f"""\
Denoise a column of numbers online: each row is predicted before its number is
seen, then learned from. Written are all cells of the row, so that the result can be
joined to what it belongs to, and two more:

  prediction   made before the row's number was seen
  estimate     of the level, the row's number included

{_FILE_HELP}

With "-" and without --output it is a filter, a line in, a line out, at once:

  tail -f load.log | sktvdenoise denoise -

A filter writes a header if it gets one; otherwise there always is one. A file is
written completely or not at all. Blank lines are passed over."""

_REGRET_HELP = f"""\
Print how much larger the squared loss of one-step predictions is than that of the
best sequence in hindsight whose total variation is at most a budget: the dynamic
regret, for several budgets. The predictions are those of "denoise", or a column of
the file.

{_FILE_HELP}"""

_DEMO_HELP = """\
Denoise the flow of the Nile, 1871-1970, online; say how well that went, and draw
it."""


def main(argv=None):
    """Run the command line.

    Parameters
    ----------
    argv : list of str, default=None
        The arguments; None takes those of the process.

    Returns
    -------
    status : int
        0; 2 if the input is wrong, which one line on standard error describes;
        130 after Ctrl-C; 141 if the reader of the output went away.

    Raises
    ------
    SystemExit
        With status 2 if the arguments are wrong, and 0 after ``--help`` and
        ``--version``.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return 0
    try:
        args.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes standard output once more when it ends.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except InputError as error:
        return _fail(error)
    except OSError as error:
        return _fail(f"cannot write the output: {reason(error)}")
    return 0


def _fail(message):
    print(f"sktvdenoise: error: {message}", file=sys.stderr)
    return _FAILED


def _parser():
    parser = argparse.ArgumentParser(
        prog="sktvdenoise",
        description="Online total-variation denoising with optimal dynamic regret.",
        epilog="Exit status: 0 for success, 2 for wrong options or input, 130 after "
        "Ctrl-C, 141 if the reader of the output went away.",
    )
    parser.add_argument(
        "--version", action="version", version=f"%(prog)s {__version__}"
    )
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name, run, summary, description):
        added = commands.add_parser(
            name,
            usage=None if name == "demo" else f"sktvdenoise {name} FILE [options]",
            help=summary,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.set_defaults(run=run)
        return added

    demo = command("demo", _demo, "show it on the flow of the Nile", _DEMO_HELP)
    demo.add_argument(
        "--output",
        metavar="P",
        default="nile.png",
        help="image to write, where matplotlib is installed (default: %(default)s)",
    )

    denoise = command("denoise", _denoise, "denoise a column of a file", _DENOISE_HELP)
    _add_input_arguments(denoise)
    denoise.add_argument(
        "--output",
        metavar="F",
        help="file to write, compressed if its name ends in .gz (default: standard "
        "output)",
    )
    denoise.add_argument(
        "--plot", metavar="P", help="image to write as well, such as curve.png"
    )

    regret = command("regret", _regret, "print dynamic regret", _REGRET_HELP)
    _add_input_arguments(regret)
    regret.add_argument(
        "--prediction",
        metavar="C",
        help="column of predictions, each made before the row's number was seen "
        "(default: predict with the denoiser)",
    )
    regret.add_argument(
        "--tv-budget",
        metavar="B",
        type=_budget,
        nargs="+",
        help="budgets of total variation, in units of the numbers (default: 0, "
        "0.1 %%, 1 %%, 10 %% and 100 %% of the column's own)",
    )
    return parser


def _add_input_arguments(parser):
    parser.add_argument("file", metavar="FILE", help='a file, "-" or "nile"')
    parser.add_argument(
        "--column",
        metavar="C",
        help="name or 0-based number of the column (default: the last one that has "
        "a number in the first row)",
    )
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line is a header (default: it is if none of its "
        "cells is a number)",
    )
    parser.add_argument(
        "--learning-rate",
        metavar="R",
        type=_learning_rate,
        default="auto",
        help='"auto", "theory", "mixable" or a number above 0 (default: %(default)s)',
    )
    parser.add_argument(
        "--missing",
        choices=["error", "skip"],
        default="error",
        help="whether an empty cell, NA or NaN is an error or a row from which "
        "nothing is learned (default: %(default)s)",
    )


def _learning_rate(text):
    if text in ("auto", "theory", "mixable"):
        return text
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate < math.inf:
        raise argparse.ArgumentTypeError(
            f'{text!r} is neither "auto", "theory", "mixable" nor a number above 0'
        )
    return rate


def _budget(text):
    try:
        budget = float(text)
    except ValueError:
        budget = math.nan
    if not 0 <= budget < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return budget


# Commands


def _denoise(args):
    live = args.file == "-" and args.output is None
    with contextlib.ExitStack() as stack:
        plot = None if args.plot is None else stack.enter_context(_image(args.plot))
        if live:
            out = sys.stdout
        elif args.output is None:
            # Standard output, too, gets nothing if a later row is in error.
            out = stack.enter_context(
                tempfile.TemporaryFile("w+", encoding="utf-8", newline="")
            )
        else:
            out = stack.enter_context(open_output(args.output))
        table, batches = stack.enter_context(_open_table(args, [args.column]))
        writer = csv.writer(out, delimiter=table.delimiter, lineterminator="\n")
        names = _names(table)
        if table.header is not None or not live:
            writer.writerow([*names, "prediction", "estimate"])
            if live:
                out.flush()

        columns = []
        for rows, values, predictions, estimates in _denoised(batches, args):
            added = zip(rows, predictions.tolist(), estimates.tolist())
            writer.writerows([*row, *pair] for row, *pair in added)
            if live:
                out.flush()
            if plot is not None:
                cells = [row[_other(table)] for row in rows]
                columns.append((cells, values, predictions))

        if plot is not None:
            cells, values, predictions = map(np.concatenate, zip(*columns))
            X = _positions(cells) if table.width > 1 else None
            plot(
                values,
                predictions,
                X=X,
                position_name="row" if X is None else names[_other(table)],
                value_name=names[table.indices[0]],
                estimate_name="one-step prediction",
            )
        if not live and args.output is None:
            out.seek(0)
            shutil.copyfileobj(out, sys.stdout)


def _regret(args):
    columns = [args.column]
    if args.prediction is not None:
        columns.append(args.prediction)
    with _open_table(args, columns) as (table, batches):
        if args.prediction is None:
            parts = [part[1:3] for part in _denoised(batches, args)]
            values, predictions = (np.concatenate(part) for part in zip(*parts))
        else:
            parts = [numbers for _, numbers in batches]
            values, predictions = np.concatenate(parts).T
        name = _names(table)[table.indices[0]]
    seen = ~np.isnan(values + predictions)
    if not seen.any():
        raise InputError(f"{args.file} has no row that is not missing")
    values, predictions = values[seen], predictions[seen]
    budgets = args.tv_budget
    if budgets is None:
        budgets = np.array([0, 0.001, 0.01, 0.1, 1]) * path_variation(values)
    who = args.prediction or "the denoiser"
    print(
        f"{len(values)} values of {name} with total variation "
        f"{_figure(path_variation(values))}.\n"
        f"Squared loss of {who}: {_figure(_sum_of_squares(values - predictions))}.\n"
    )
    print(_regret_table(values, {"regret": predictions}, sorted(budgets)))


def _demo(args):
    X, y = load_nile(return_X_y=True)
    predictions = OnlineTVDenoiser().partial_fit_predict(X, y)
    last_values = np.append(0.0, y[:-1])
    noise = np.diff(y).std() / math.sqrt(2)
    drop = y[:28].mean() - y[28:].mean()
    whole = path_variation(y)
    budgets = [0.0, 100.0, 250.0, 1000.0, whole]
    losses = [_figure(_sum_of_squares(y - x)) for x in (predictions, last_values)]
    print(
        f"""\
The flow of the Nile at Aswan, {X[0, 0]}-{X[-1, 0]}, in 1e8 cubic metres a year:
noise of about {noise:.0f}, and one drop of {drop:.0f}, after 1898.

It was denoised online: each year was predicted before its flow was seen. Sums of
squared errors, {_figure(y[0] ** 2)} of each for the first year, when both predict 0:

  online denoiser    {losses[0]}
  last year's flow   {losses[1]}

The oracle knows all years, but its total variation (TV) is kept within a budget:
0 is one level for ever, 250 allows the drop, {_figure(whole)} is every year's own.
Dynamic regret is how much larger a sum of squared errors is than the oracle's:
"""
    )
    columns = {"regret, online": predictions, "regret, last year": last_values}
    print(_regret_table(y, columns, budgets))
    try:
        check_matplotlib_support("demo")
    except ImportError:
        print("\nNo picture: matplotlib is missing. pip install sktvdenoise[plot]")
        return
    with _image(args.output) as draw:
        draw(
            y,
            predictions,
            X=X,
            tv_budget=250,
            position_name="year",
            value_name="flow (10⁸ m³ per year)",
            estimate_name="online, before the year's flow is seen",
        )
    print(f"\nThe picture is in {args.output}.")


# What the commands share


@contextlib.contextmanager
def _open_table(args, columns):
    """The columns of the input, and its batches with a bar that shows progress."""
    if args.file == "-":
        opened = contextlib.nullcontext((sys.stdin.buffer, None))
        name = "standard input"
    elif args.file == "nile":
        nile = load_nile()
        lines = ["year,volume"]
        lines += [
            f"{year},{volume:g}" for (year,), volume in zip(nile.data, nile.target)
        ]
        opened = contextlib.nullcontext((io.BytesIO("\n".join(lines).encode()), None))
        name = "nile"
    else:
        opened, name = open_input(args.file), args.file
    with opened as (stream, share_read):
        table = NumberColumns(
            stream, name, columns, header=args.header, missing=args.missing
        )
        batches = table.batches()
        if share_read is not None and sys.stderr.isatty():
            batches = _with_progress(batches, share_read)
        yield table, batches


def _names(table):
    if table.header is not None:
        return table.header
    names = [f"column_{i}" for i in range(table.width)]
    names[table.indices[0]] = "value"
    return names


def _other(table):
    """Index of the first column that is not the one denoised."""
    return int(table.indices[0] == 0 < table.width - 1)


def _denoised(batches, args):
    """Rows, numbers, predictions and estimates, batch by batch."""
    denoiser = OnlineTVDenoiser(
        learning_rate=args.learning_rate, missing=args.missing, keep_history=False
    )
    n_seen = 0
    for rows, numbers in batches:
        values = numbers[:, 0]
        positions = np.arange(n_seen, n_seen + len(values))
        n_seen += len(values)
        predictions = denoiser.partial_fit_predict(positions, values)
        # The estimate in a row is the prediction for the next one.
        estimates = np.append(predictions[1:], denoiser.predict(positions[-1:]))
        yield rows, values, predictions, estimates


def _with_progress(batches, share_read):
    shown = time.monotonic()
    try:
        for batch in batches:
            yield batch
            if time.monotonic() - shown > 0.1:
                shown = time.monotonic()
                share = share_read()
                bar = "#" * int(30 * share)
                print(
                    f"\r[{bar:<30}] {share:4.0%}", end="", file=sys.stderr, flush=True
                )
    finally:
        print("\r" + " " * 37 + "\r", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _image(path):
    """A function that draws a display into the image that `path` becomes."""
    try:
        check_matplotlib_support("--plot")
    except ImportError:
        raise InputError(
            "an image needs matplotlib: pip install sktvdenoise[plot]"
        ) from None
    from matplotlib.backend_bases import FigureCanvasBase
    from matplotlib.figure import Figure

    kind = os.path.splitext(path)[1][1:].lower()
    kinds = FigureCanvasBase.get_supported_filetypes()
    if kind not in kinds:
        raise InputError(
            f"cannot write {path}: the name of an image ends in .png, .pdf or .svg"
        )
    with open_output(path, binary=True) as file:

        def draw(y, predictions, **kwargs):
            # The first prediction knows nothing: no scale should be made for it.
            predictions = np.append(np.nan, predictions[1:])
            figure = Figure(figsize=(8, 4.5), layout="constrained")
            axes = figure.subplots()
            DenoisingDisplay.from_predictions(y, predictions, ax=axes, **kwargs)
            figure.savefig(file, format=kind, dpi=150)

        yield draw


def _positions(cells):
    """Cells as numbers or times, if they are that and don't decrease; else None."""
    try:
        positions = np.array([float(cell) for cell in cells])
    except ValueError:
        try:
            times = [
                datetime.fromisoformat(cell).replace(tzinfo=None) for cell in cells
            ]
        except ValueError:
            return None
        positions = np.array(times, dtype="datetime64[us]")
    ascending = np.isfinite(positions).all() and (positions[1:] >= positions[:-1]).all()
    return positions if ascending else None


def _regret_table(y, columns, budgets):
    """Losses of the oracle and regrets of predictions, a line for each budget."""
    losses = [_sum_of_squares(y - predictions) for predictions in columns.values()]
    lines = [["TV budget", "oracle's loss", *columns]]
    for budget in budgets:
        oracle_loss = tv_oracle(y, budget).loss
        regrets = [loss - oracle_loss for loss in losses]
        lines.append([_figure(x) for x in (budget, oracle_loss, *regrets)])
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join(
        "  " + "   ".join(cell.rjust(width) for cell, width in zip(line, widths))
        for line in lines
    )


def _figure(x):
    """A number with six digits, or with all before the point."""
    return f"{x:,.0f}" if 1e6 <= abs(x) < 1e15 else f"{x:,.6g}"


def _sum_of_squares(errors):
    return float(errors @ errors)


if __name__ == "__main__":
    sys.exit(main())
