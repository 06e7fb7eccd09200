"""The arguments of the command line, and its help."""

import argparse
import math

from sktvdenoise import __version__

COVERAGE = 0.9  # of --interval

_FILE_HELP = """\
FILE is CSV text: cells separated by commas, semicolons or tabs, with a header or
without; a name that ends in .gz is decompressed. "-" is standard input, "nile" the
flow of the Nile that comes with the package ("./nile" is a file of that name).
Text is UTF-8, and numbers have a decimal point. A column that was chosen among
several is named on standard error."""

_DENOISE_HELP = f"""\
Denoise a column of numbers online: each row is predicted before its number is
seen, then learned from. Written are all cells of the row, so that the result can be
joined to what it belongs to, and two more, or four:

  prediction   made before the row's number was seen
  estimate     of the level, the row's number included
  low, high    with --interval: where the row's number was expected

{_FILE_HELP}

With "-" and without --output it is a filter, a line in, a line out, at once:

  tail -f load.log | sktvdenoise denoise -

A filter writes a header if it gets one; otherwise there always is one. A file is
written completely or not at all. Blank lines are passed over."""

_REGRET_HELP = f"""\
Print how much larger the squared loss of one-step predictions is than that of the
best sequence in hindsight whose total variation is at most a budget: the dynamic
regret, for several budgets. The predictions are those of "denoise", or a column of
the file. A negative regret means that they did better than every such sequence.

{_FILE_HELP}"""

_DEMO_HELP = """\
Denoise the flow of the Nile, 1871-1970, online; say how well that went, and draw
it."""


def make_parser():
    """The parser; ``command`` of what it returns is the name of a command, or None."""
    parser = argparse.ArgumentParser(
        prog="sktvdenoise",
        description="Online total-variation denoising with optimal dynamic regret.",
        epilog="Exit status: 0 for success, 2 for wrong options or input, 128 + k "
        "after signal k, as 130 after Ctrl-C, 141 if the reader of the output went "
        "away.",
    )
    parser.add_argument(
        "--version", action="version", version=f"%(prog)s {__version__}"
    )
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name, summary, description):
        return commands.add_parser(
            name,
            usage=None if name == "demo" else f"sktvdenoise {name} FILE [options]",
            help=summary,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    demo = command("demo", "show it on the flow of the Nile", _DEMO_HELP)
    demo.add_argument(
        "--output",
        metavar="P",
        type=_path,
        help="image to write, where matplotlib is installed (default: nile.png, if "
        "there is no such file)",
    )

    denoise = command("denoise", "denoise a column of a file", _DENOISE_HELP)
    _add_input_arguments(denoise)
    denoise.add_argument(
        "--interval",
        action="store_true",
        help=f"write low and high, too: {COVERAGE:.0%} of the numbers should fall "
        "between them".replace("%", "%%"),
    )
    denoise.add_argument(
        "--output",
        metavar="F",
        type=_path,
        help="file to write, compressed if its name ends in .gz (default: standard "
        "output)",
    )
    denoise.add_argument(
        "--plot",
        metavar="P",
        type=_path,
        help="image to write as well: .png, .pdf or .svg. Its x axis is the first "
        "other column if that holds ascending numbers or dates, else the row",
    )

    regret = command("regret", "print dynamic regret", _REGRET_HELP)
    _add_input_arguments(regret)
    regret.add_argument(
        "--prediction",
        metavar="C",
        help="column of predictions, each made before the row's number was seen "
        "(default: predict with the denoiser)",
    )
    regret.add_argument(
        "--tv-budget",
        metavar="B,...",
        type=_budgets,
        help="budgets of total variation, in units of the numbers, such as "
        "0,100,1000 (default: 0, 0.1 %%, 1 %%, 10 %% and 100 %% of the column's own)",
    )
    return parser


def _add_input_arguments(parser):
    parser.add_argument(
        "file", metavar="FILE", type=_path, help='a file, "-" or "nile"'
    )
    parser.add_argument(
        "--column",
        metavar="C",
        help="name or 0-based number of the column (default: the last one whose "
        "first cell is a number or missing)",
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


def _budgets(text):
    try:
        budgets = [float(budget) for budget in text.split(",")]
    except ValueError:
        budgets = [math.nan]
    if not all(0 <= budget < math.inf for budget in budgets):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of at least 0, or several with commas between"
        )
    return budgets


def _path(text):
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is empty")
    return text
