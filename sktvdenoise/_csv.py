"""Columns of numbers in CSV files, read as they come and written all or nothing."""

import csv
import gzip
import os
import secrets
import shutil
import zlib
from contextlib import contextmanager, suppress
from itertools import chain

import numpy as np

_BLOCK = 1 << 16  # bytes asked for at a time
_LONGEST_LINE = 1 << 20
_LARGEST_NUMBER = 1e140  # squares of larger ones leave the range of numbers
_MISSING = {"", "na", "n/a", "nan", "null", "none"}


class InputError(ValueError):
    """What is wrong with a file, in one line that names it."""


class NumberColumns:
    """Rows of a CSV text with the numbers in some of its columns.

    The first line that is not blank decides: its cells are separated by tabs, if
    it has any, else by semicolons, else by commas; it is a header if none of them
    is a number, or one of them is the name of a column asked for. Blank lines are
    passed over. A number has a decimal point and no other separators: one with a
    comma is recognised, and refused.

    Parameters
    ----------
    stream : binary file with ``read1``
        UTF-8 text. No more is read than needed for the rows that are asked for.
    name : str
        What messages call the stream.
    columns : list of str or None
        Name or 0-based index of each column. None is the only one, or else the
        last of those with a name, if there is a header, whose first cell is a
        number or missing.
    header : bool, default=None
        Whether the first line is a header; None finds out.
    missing : {"error", "skip"}, default="error"
        Whether a cell may be empty or NA, NaN, null, None, in any case; its
        number is NaN.

    Attributes
    ----------
    name : str
    header : list of str or None
        Cells of the header.
    width : int
        Number of cells in each row.
    indices : list of int
        Index of each column asked for. With a header, a column given as None is
        known only once the first row has been read.
    chosen : int or None
        Index of the column given as None, chosen among several.
    delimiter : str
    """

    def __init__(self, stream, name, columns, *, header=None, missing="error"):
        self.name = name
        self._missing = missing
        self._lines = _Lines(stream, name)
        first = next((line for line in self._lines if line.strip()), None)
        if first is None:
            raise InputError(f"{name} is empty")
        self.delimiter = next((d for d in "\t;" if d in first), ",")
        # The reader counts the lines it is given: none of the blank ones before.
        self._skipped = self._lines.count - 1
        self._reader = csv.reader(
            chain([first], self._lines), delimiter=self.delimiter, strict=True
        )
        cells = next(self._rows(), None)
        if cells is None:
            raise InputError(f"{name} is empty")
        self.width = len(cells)
        if header is None:
            asked = {column for column in columns if not self._is_index(column)}
            numbers = any(_stands_for_number(c) for c in cells if c.strip())
            header = not numbers or not asked.isdisjoint(cells)
        self.header = [cell.strip() for cell in cells] if header else None
        self._first_row = None if header else cells
        self.chosen = None
        self.indices = [
            self._index(column) if column is not None else None for column in columns
        ]
        if not header:
            self._choose(cells)

    def batches(self):
        """Yield rows and their numbers, as many at a time as are there at once.

        Rows before one that is in error are yielded before the error is raised.

        Yields
        ------
        rows : list of list of str
        numbers : ndarray of shape (len(rows), len(columns))

        Raises
        ------
        InputError
            That names the line: another number of cells than in the first, a
            cell that is not a number, or not a finite one; or no rows at all.
        """
        rows, numbers, error = [], [], None
        any_rows = False
        reader = self._rows()
        if self._first_row is not None:
            reader = chain([self._first_row], reader)
        try:
            for row in reader:
                if len(row) != self.width:
                    raise self._error(
                        f"{_count(len(row), 'cell')}, but the first line has "
                        f"{self.width}"
                    )
                if not any_rows:
                    any_rows = True
                    self._choose(row)
                for index in self.indices:
                    numbers.append(self._number(row[index], index))
                rows.append(row)
                if not self._lines.ready:
                    yield rows, np.reshape(numbers, (len(rows), -1))
                    rows, numbers = [], []
        except InputError as caught:
            error = caught
        if rows:
            # A row in error may have left numbers of its first columns.
            del numbers[len(rows) * len(self.indices) :]
            yield rows, np.reshape(numbers, (len(rows), -1))
        if error is not None:
            raise error
        if not any_rows:
            raise InputError(f"{self.name} has a header but no rows")

    def _rows(self):
        try:
            for row in self._reader:
                if len(row) > 1 or (row and row[0].strip()):
                    yield row
        except csv.Error as error:
            raise self._error(f"not CSV ({error})") from None

    def _number(self, cell, index):
        try:
            number = float(cell)
        except ValueError:
            if not _is_missing(cell):
                why = "is not a number"
                if _stands_for_number(cell):
                    why += ": its only separator may be a decimal point"
                raise self._cell_error(cell, index, why) from None
            number = np.nan
        # False for NaN and infinity as well. Python reads 1_000 as a number.
        if -_LARGEST_NUMBER <= number <= _LARGEST_NUMBER and "_" not in cell:
            return number
        if np.isnan(number):
            if self._missing == "skip":
                return number
            why = "is a missing value; --missing skip passes over it"
        elif "_" in cell:
            why = "is not a number"
        elif np.isinf(number):
            why = "is not finite"
        else:
            why = "is too large: its square is not a finite number"
        raise self._cell_error(cell, index, why)

    def _index(self, column):
        """The index of a column given by name or number."""
        names = self.header if self.header is not None else []
        if names.count(column) > 1:
            raise InputError(
                f"{self.name} has several columns {column!r}; give one by its number"
            )
        if column in names:
            return names.index(column)
        if self._is_index(column):
            return int(column)
        if self.header is None:
            there = f"no header, and columns 0 to {self.width - 1}"
        else:
            there = "columns " + ", ".join(names)
        raise InputError(f"{self.name} has no column {column!r}: it has {there}")

    def _is_index(self, column):
        decimal = column is not None and column.isdecimal()
        return decimal and int(column) < self.width

    def _choose(self, row):
        """Settle the columns given as None by the first row."""
        if None not in self.indices:
            return
        chosen = 0
        if self.width > 1:
            named = self.header or [True] * self.width
            numeric = [
                i for i in range(self.width) if named[i] and _stands_for_number(row[i])
            ]
            if not numeric:
                raise self._error("no cell is a number; name a column with --column")
            chosen = self.chosen = numeric[-1]
        self.indices = [chosen if i is None else i for i in self.indices]

    def _error(self, what):
        line = self._reader.line_num + self._skipped
        return InputError(f"{self.name}, line {line}: {what}")

    def _cell_error(self, cell, index, what):
        cell = cell if len(cell) <= 40 else cell[:37] + "..."
        column = index if self.header is None else repr(self.header[index])
        where = f" in column {column}" if self.width > 1 else ""
        hint = " (--column names another column)" if index == self.chosen else ""
        return self._error(f"{cell!r}{where} {what}{hint}")


class _Lines:
    """Iterator over the lines of a binary stream, decoded.

    `ready` tells whether one that is not blank is there without reading, `count`
    how many were taken.
    """

    def __init__(self, stream, name):
        self._stream = stream
        self._name = name
        self._read = []  # complete lines not yet taken, the next one at the end
        self._n_blank = 0  # of them, those at the very end that are blank
        self._rest = b""  # the beginning of a line
        self.count = 0

    @property
    def ready(self):
        return len(self._read) > self._n_blank

    def __iter__(self):
        return self

    def __next__(self):
        while not self._read:
            self._fill()
        self.count += 1
        return self._read.pop() + "\n"

    def _fill(self):
        try:
            block = self._stream.read1(_BLOCK)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"cannot read {self._name}: {reason(error)}") from None
        if not block and not self._rest:
            raise StopIteration
        # Without a block it is the end, and the rest is a line.
        end = block.rfind(b"\n") if block else 0
        if end < 0:
            self._rest += block
            if len(self._rest) > _LONGEST_LINE:
                raise InputError(
                    f"{self._name} is not CSV: line {self.count + 1} "
                    f"is longer than {_LONGEST_LINE} bytes"
                )
            return
        text = self._rest + block[:end]
        self._rest = block[end + 1 :]
        try:
            text = text.decode("utf-8-sig" if self.count == 0 else "utf-8")
        except UnicodeDecodeError as error:
            line = self.count + 1 + text.count(b"\n", 0, error.start)
            raise InputError(f"{self._name} is not UTF-8 text (line {line})") from None
        if "\0" in text:
            line = self.count + 1 + text.count("\n", 0, text.index("\0"))
            raise InputError(f"{self._name} is not text (line {line} has a zero byte)")
        self._read = text.split("\n")[::-1]
        n_blank = 0
        while n_blank < len(self._read) and not self._read[n_blank].strip():
            n_blank += 1
        self._n_blank = n_blank


@contextmanager
def open_input(path):
    """Open a file to read its bytes; one whose name ends in .gz is decompressed.

    Yields the stream and a function that tells which share of the file was read.
    """
    try:
        file = open(path, "rb")
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}") from None
    with file:
        size = os.fstat(file.fileno()).st_size
        stream = gzip.open(file) if path.endswith(".gz") else file
        yield stream, lambda: file.tell() / size if size else 1.0


@contextmanager
def open_output(path, *, binary=False):
    """Open a file that takes the place of `path` if the block ends without error.

    Until then `path` is as it was. What is no regular file, as a pipe, is written
    to directly. A text file whose name ends in .gz is compressed.
    """
    target = os.path.realpath(path)
    regular = not os.path.exists(target) or os.path.isfile(target)
    written = target
    if regular:
        name = f".sktvdenoise.{secrets.token_hex(8)}.part"
        written = os.path.join(os.path.dirname(target), name)
    with errors_name(path):
        if regular and os.path.exists(target) and not os.access(target, os.W_OK):
            raise PermissionError(13, "Permission denied")
        try:
            with open(written, "xb" if regular else "wb") as file:
                if binary:
                    yield file
                elif path.endswith(".gz"):
                    with gzip.open(file, "wt", encoding="utf-8", newline="") as text:
                        yield text
                else:
                    with open(
                        file.fileno(), "w", encoding="utf-8", newline="", closefd=False
                    ) as text:
                        yield text
            if regular:
                if os.path.exists(target):
                    shutil.copymode(target, written)
                os.replace(written, target)
        except BaseException:
            if regular:
                with suppress(OSError):
                    os.unlink(written)
            raise


@contextmanager
def errors_name(output):
    """Within the block an error of the operating system is one of that output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {output}: {reason(error)}") from None


def reason(error):
    """Why the operating system refused, without its number."""
    return getattr(error, "strerror", None) or str(error)


def _count(number, noun):
    return f"{number} {noun}" + "s" * (number != 1)


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _stands_for_number(cell):
    """Whether a cell is a number, if with commas, or the place of a missing one."""
    return _is_number(cell.replace(",", "")) or _is_missing(cell)


def _is_missing(cell):
    return cell.strip().casefold() in _MISSING
