"""The command line: ``python -m sktvdenoise``, or ``sktvdenoise``."""

import contextlib
import csv
import io
import math
import os
import shutil
import signal
import sys
import tempfile
from textwrap import indent

import numpy as np
from scipy.stats import norm

from sktvdenoise._console import (
    aligned,
    figure,
    progress_bar,
    say,
    settle,
    signals_raise,
)
from sktvdenoise._csv import (
    InputError,
    NumberColumns,
    errors_name,
    open_input,
    open_output,
    reason,
)
from sktvdenoise._options import COVERAGE, make_parser
from sktvdenoise._picture import has_matplotlib, open_image, positions_of
from sktvdenoise._plot_rows import literal
from sktvdenoise.datasets import load_nile
from sktvdenoise.metrics import path_variation, tv_oracle
from sktvdenoise.online import OnlineTVDenoiser

_FAILED = 2  # wrong options or input
_SIGNALLED = 128  # plus the signal's number: what the shell reports
_BROKEN_PIPE = 141
_FEW = 50  # up to so many rows, learning them one by one is faster


def main(argv=None):
    """Run the command line.

    Parameters
    ----------
    argv : list of str, default=None
        The arguments; None takes those of the process.

    Returns
    -------
    status : int
        0; 2 if the input is wrong or the output can't be written, which one line on
        standard error describes; 128 + k after signal k, as 130 after Ctrl-C; 141
        if the reader of the output went away.

    Raises
    ------
    SystemExit
        With status 2 if the arguments are wrong, and 0 after ``--help`` and
        ``--version``.
    """
    if sys.stdout is None:
        say("sktvdenoise: error: standard output is closed")
        return _FAILED
    if isinstance(sys.stdout, io.TextIOWrapper):
        # The same bytes as in a file, whatever the locale.
        sys.stdout.reconfigure(
            encoding="utf-8", errors="backslashreplace", newline="\n"
        )
    try:
        with signals_raise():
            parser = make_parser()
            try:
                args = parser.parse_args(argv)
            finally:
                sys.stdout.flush()
            if args.command is None:
                parser.print_help()
            else:
                _COMMANDS[args.command](args)
            sys.stdout.flush()
        return 0
    except KeyboardInterrupt as error:
        (number,) = error.args or (signal.SIGINT,)
        return _SIGNALLED + number
    except BrokenPipeError:
        settle(sys.stdout)
        return _BROKEN_PIPE
    except InputError as error:
        message = error
    except OSError as error:
        message = f"cannot write the output: {reason(error)}"
    say(f"sktvdenoise: error: {message}")
    settle(sys.stdout)
    return _FAILED


# Commands


def _denoise(args):
    live = args.file == "-" and args.output is None
    if args.plot and args.output:
        if os.path.realpath(args.plot) == os.path.realpath(args.output):
            raise InputError(f"--output and --plot are the same file, {args.plot}")
    with contextlib.ExitStack() as stack:
        if live:
            out = sys.stdout
        elif args.output is None:
            # Standard output, too, gets nothing if a later row is in error.
            out = stack.enter_context(
                tempfile.TemporaryFile("w+", encoding="utf-8", newline="")
            )
        else:
            out = stack.enter_context(open_output(args.output))
        image = contextlib.nullcontext() if args.plot is None else open_image(args.plot)
        with image as draw, errors_name(args.output or "the output"):
            _write_denoised(args, out, live, draw)
        if not live and args.output is None:
            out.seek(0)
            shutil.copyfileobj(out, sys.stdout)


def _write_denoised(args, out, live, draw):
    """Write rows with what is added to them, and draw them if `draw` isn't None."""
    denoiser = _denoiser(args)
    added = ["prediction", "estimate", *(["low", "high"] if args.interval else [])]
    reach = norm.ppf((1 + COVERAGE) / 2)
    columns = []
    with _open_table(args, [args.column]) as (table, batches):
        names = _names(table)
        for name in added:
            if name in names:
                raise InputError(f"{table.name} has a column {name!r}: rename it")
        writer = csv.writer(out, delimiter=table.delimiter, lineterminator="\n")
        if table.header is not None or not live:
            writer.writerow([*names, *added])
            if live:
                out.flush()

        for rows, values, predictions, estimates, stds in _denoised(batches, denoiser):
            new = [predictions, estimates]
            if args.interval:
                new += [predictions - reach * stds, predictions + reach * stds]
            new = np.stack(new, axis=1).tolist()
            writer.writerows([*row, *cells] for row, cells in zip(rows, new))
            if live:
                out.flush()
            if draw is not None:
                cells = [row[_other(table)] for row in rows]
                columns.append((cells, values, predictions))

    if draw is not None:
        cells, values, predictions = map(np.concatenate, zip(*columns))
        X = positions_of(cells) if table.width > 1 else None
        draw(
            values,
            predictions,
            X=X,
            breakpoints=denoiser.breakpoints_,
            position_name="row" if X is None else literal(names[_other(table)]),
            value_name=literal(names[table.indices[0]]),
            estimate_name="one-step prediction",
        )


def _regret(args):
    columns = [args.column]
    if args.prediction is not None:
        columns.append(args.prediction)
    with _open_table(args, columns) as (table, batches):
        if args.prediction is None:
            parts = [part[1:3] for part in _denoised(batches, _denoiser(args))]
            values, predictions = (np.concatenate(part) for part in zip(*parts))
        else:
            parts = [numbers for _, numbers in batches]
            values, predictions = np.concatenate(parts).T
        name = _names(table)[table.indices[0]]
    seen = ~np.isnan(values + predictions)
    if not seen.any():
        raise InputError(f"{table.name} has no row that is not missing")
    values, predictions = values[seen], predictions[seen]
    budgets = args.tv_budget
    if budgets is None:
        budgets = np.array([0, 0.001, 0.01, 0.1, 1]) * path_variation(values)
    loss = figure(_sum_of_squares(values - predictions))
    if args.prediction is None:
        loss += f" ({figure(values[0] ** 2)} of it for the first, predicted as 0)"
    print(
        f"{len(values)} values of {name} with total variation "
        f"{figure(path_variation(values))}.\n"
        f"Squared loss of {args.prediction or 'the denoiser'}: {loss}.\n"
    )
    print(_regret_table(values, {"regret": predictions}, np.unique(budgets)))
    print(
        "\nRegret is the loss less the oracle's: negative where the predictions did"
        "\nbetter than every sequence within the budget."
    )


def _demo(args):
    X, y = load_nile(return_X_y=True)
    denoiser = OnlineTVDenoiser()
    predictions = denoiser.partial_fit_predict(X, y)
    breakpoints = denoiser.breakpoints_
    found = " and ".join(str(year) for year in X[breakpoints, 0])
    # Before anything is printed: its reader may go.
    said = _draw_demo(
        args.output, y=y, predictions=predictions, X=X, breakpoints=breakpoints
    )
    last_values = np.append(0.0, y[:-1])
    noise = np.diff(y).std() / math.sqrt(2)
    drop = y[:28].mean() - y[28:].mean()
    whole = path_variation(y)
    budgets = [0.0, 100.0, 250.0, 1000.0, whole]
    losses = [figure(_sum_of_squares(y - x)) for x in (predictions, last_values)]
    print(
        f"""\
The flow of the Nile at Aswan, {X[0, 0]}-{X[-1, 0]}, in 1e8 cubic metres a year:
noise of about {noise:.0f}, and one drop of {drop:.0f}, after 1898.

It was denoised online: each year was predicted before its flow was seen. Sums of
squared errors, {figure(y[0] ** 2)} of each for the first year, when both predict 0:

  online denoiser    {losses[0]}
  last year's flow   {losses[1]}

A new level was found to begin in {found}.

The oracle knows all years, but its total variation (TV) is kept within a budget:
0 is one level for ever, 250 allows the drop, {figure(whole)} is every year's own.
Dynamic regret is how much larger a sum of squared errors is than the oracle's:
"""
    )
    columns = {"regret, online": predictions, "regret, last year": last_values}
    print(_regret_table(y, columns, budgets))
    print(f"\n{said}")


def _draw_demo(output, **shown):
    """Draw the image if there is nothing against it; say so."""
    if not has_matplotlib():
        return "No picture: matplotlib is missing. pip install sktvdenoise[plot]"
    path = output or "nile.png"
    if output is None and os.path.exists(path):
        return f"No picture: {path} is there already. --output {path} replaces it."
    with open_image(path) as draw:
        draw(
            **shown,
            tv_budget=250,
            position_name="year",
            value_name="flow (10⁸ m³ per year)",
            estimate_name="online, before the year's flow is seen",
        )
    return f"The picture is in {path}."


_COMMANDS = {"demo": _demo, "denoise": _denoise, "regret": _regret}

# What the commands share


@contextlib.contextmanager
def _open_table(args, columns):
    """The columns of the input, and its batches with a bar that shows progress."""
    if args.file == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed")
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
        columns = ["volume" if column is None else column for column in columns]
    else:
        opened, name = open_input(args.file), args.file
    with opened as (stream, share_read):
        table = NumberColumns(
            stream, name, columns, header=args.header, missing=args.missing
        )
        batches = _with_name_of_column(table)
        if share_read is not None and sys.stderr is not None and sys.stderr.isatty():
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


def _denoiser(args):
    return OnlineTVDenoiser(
        learning_rate=args.learning_rate, missing=args.missing, keep_history=False
    )


def _denoised(batches, denoiser):
    """Rows, numbers, predictions, estimates and standard deviations of predictions.

    All batch by batch.
    """
    n_seen, std = 0, math.inf
    for rows, numbers in batches:
        values = numbers[:, 0]
        if len(values) <= _FEW:
            predictions, stds = np.empty((2, len(values)))
            for i, value in enumerate(values.tolist()):
                predictions[i], stds[i] = denoiser.predict_one(), std
                denoiser.learn_one(value)
                std = denoiser.std_
        else:
            predictions, stds = denoiser.partial_fit_predict(
                np.arange(n_seen, n_seen + len(values)), values, return_std=True
            )
            std = denoiser.std_
        n_seen += len(values)
        # The estimate in a row is the prediction for the next one.
        estimates = np.append(predictions[1:], denoiser.predict_one())
        yield rows, values, predictions, estimates, stds


def _with_name_of_column(table):
    """The batches; tell which column they are of if it was chosen."""
    for i, batch in enumerate(table.batches()):
        if i == 0 and table.chosen is not None:
            name, hint = table.chosen, ", and the first line is no header"
            if table.header is not None:
                name, hint = repr(table.header[table.chosen]), ""
            say(f"sktvdenoise: the column is {name}{hint}; --column names another")
        yield batch


def _with_progress(batches, share_read):
    with progress_bar() as show:
        for batch in batches:
            yield batch
            show(share_read())


def _regret_table(y, columns, budgets):
    """Losses of the oracle and regrets of predictions, a line for each budget."""
    losses = [_sum_of_squares(y - predictions) for predictions in columns.values()]
    lines = [["TV budget", "oracle's loss", *columns]]
    for budget in budgets:
        oracle_loss = tv_oracle(y, budget).loss
        regrets = [loss - oracle_loss for loss in losses]
        lines.append([figure(x) for x in (budget, oracle_loss, *regrets)])
    return indent(aligned(lines), "  ")


def _sum_of_squares(errors):
    return float(errors @ errors)


if __name__ == "__main__":
    sys.exit(main())
