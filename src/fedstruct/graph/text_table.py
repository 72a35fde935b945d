"""Tables as text, the CSV files of many programs: every field as it stands, and a mistake in one named by its row."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from fedstruct.errors import FedstructError

if TYPE_CHECKING:
    import polars

SEPARATORS = (",", ";", "\t")
OTHER_SEPARATORS = ("|", "^")
NAMES = {"\t": "a tab"}
QUOTED = re.compile('"[^"]*"')
LONGEST = 1 << 24
"""Bytes of a heading."""


def heading(path: Path) -> str:
    """The first line of a file of text; empty where it has none, or no text."""
    try:
        with path.open("rb") as file:
            return file.readline(LONGEST).decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        return ""
    except FileNotFoundError:
        raise FedstructError(f"there is no table {path}; check its path") from None
    except OSError as error:
        raise FedstructError(f"the table {path} cannot be read: {error.strerror}") from None


def read(path: Path) -> polars.DataFrame:
    """The columns of a file by the names in its heading, all as text; an empty field is null."""
    first = heading(path)
    if not first.strip():
        with path.open("rb") as file:
            if not file.readline(LONGEST).isascii():
                raise FedstructError(f"the heading of the table {path} is not UTF-8 text; save the table as UTF-8")
        raise FedstructError(f"the table {path} has no heading; its first line must name the columns, in UTF-8")
    if first.count('"') % 2:
        raise FedstructError(f"the heading of the table {path} has a quotation mark that is not closed on its line")
    bare = QUOTED.sub("", first)
    separator = max(SEPARATORS, key=bare.count)
    columns = next(csv.reader([first], delimiter=separator))
    _check_names(path, columns, separator, bare)
    return read_rows(path, columns, separator)


def read_rows(path: Path, columns: Sequence[str], separator: str = ",") -> polars.DataFrame:
    """What stands below the heading, under these names; each row must have a field for each."""
    import polars

    try:
        # As text, so that 007 stays what it is; a column that must hold numbers is read as such later.
        frame = polars.read_csv(
            path,
            has_header=False,
            skip_rows=1,
            new_columns=list(columns),
            infer_schema=False,
            separator=separator,
            glob=False,
        )
    except polars.exceptions.NoDataError:
        return polars.DataFrame(schema=dict.fromkeys(columns, polars.String))
    except (OSError, polars.exceptions.PolarsError) as error:
        _name_the_row(path, columns, separator)
        why = str(error).strip().splitlines()[0]
        raise FedstructError(f"the table {path} cannot be read: {why}") from None
    # What is missing at the end of a row looks like an empty field, so only such a table is looked at again.
    if frame.width != len(columns) or frame[columns[-1]].null_count():
        _name_the_row(path, columns, separator)
    return frame


def _check_names(path: Path, columns: Sequence[str], separator: str, bare: str) -> None:
    """Refuse headings under which two columns, or one that is several, would be taken for another."""
    others = [other for other in SEPARATORS if other != separator] + list(OTHER_SEPARATORS if len(columns) == 1 else ())
    for other in others:
        if other in bare:
            raise FedstructError(
                f"the heading of the table {path} looks separated by {_named(other)}"
                + (f" and by {_named(separator)}" if len(columns) > 1 else "")
                + "; put one of ',' and ';' and a tab between all columns, or names with such a letter in quotes"
            )
    for i, name in enumerate(columns):
        if name in columns[:i]:
            raise FedstructError(f"the table {path} has two columns called '{name}'; rename one of them")


def _name_the_row(path: Path, columns: Sequence[str], separator: str) -> None:
    """Raise the error of the first row that is not right, if one is."""
    taken: list[str] = []
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        lines = _kept(islice(file, 1, None), taken)
        rows = csv.reader(lines, delimiter=separator, strict=True)
        for number in range(1, 1 << 62):
            taken.clear()
            try:
                fields = next(rows, None)
            except csv.Error:
                raise _wrong(path, number, "has a quotation mark that is not closed, or not doubled") from None
            if fields is None:
                return
            text = "".join(taken)
            if not _is_utf8(text):
                raise _wrong(path, number, "is not UTF-8 text; save the table as UTF-8")
            if text.count('"') % 2:
                raise _wrong(path, number, "has a quotation mark that is not closed, or not doubled")
            if len(fields or [""]) != len(columns):
                found = f"has {len(fields)} field{'s' * (len(fields) != 1)}" if fields else "is empty"
                says = f"{found}, but the heading names {len(columns)} column{'s' * (len(columns) != 1)}"
                other = next((s for s in (*SEPARATORS, *OTHER_SEPARATORS) if s != separator and s in text), None)
                if len(fields) == 1 and other is not None:
                    says += f"; it looks separated by {_named(other)}"
                raise _wrong(path, number, says)


def _kept(lines: Iterable[str], taken: list[str]) -> Iterator[str]:
    """The lines, each of which is noted as it is taken."""
    for line in lines:
        taken.append(line)
        yield line


def _is_utf8(text: str) -> bool:
    return not any("\udc80" <= letter <= "\udcff" for letter in text)


def _named(separator: str) -> str:
    return NAMES.get(separator, f"'{separator}'")


def _wrong(path: Path, row: int, says: str) -> FedstructError:
    return FedstructError(f"{path}, row {row}: it {says}")
