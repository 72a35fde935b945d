"""What the columns of a table become: features, labels, times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedstruct.errors import FedstructError
from fedstruct.graph.graph import UNKNOWN
from fedstruct.graph.table import Table

if TYPE_CHECKING:
    import polars

MOST_TEXTS = 50
"""Different texts that a column of features may hold; each becomes a feature of its own."""

TRUTH = {"false": 0, "true": 1, "no": 0, "yes": 1}


def features(table: Table, columns: Sequence[str], standardise: bool) -> np.ndarray:
    """One or more features per column: numbers, standardised or as they are, and texts one-hot.

    Where numbers are standardised, a missing one counts as the mean; a missing text is none of the texts. Without
    columns, every row has the one feature 1.

    >>> import polars
    >>> table = Table(polars.DataFrame({"age": [20, 40], "kind": ["shop", "person"]}), "accounts")
    >>> features(table, ["age", "kind"], standardise=True).tolist()
    [[-1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    made = [
        _numbers(table, column, standardise) if table.is_numeric(column) else _one_hot(table, column)
        for column in columns
    ]
    return np.concatenate(made, axis=1) if made else np.ones((len(table), 1))


def labels(table: Table, column: str) -> tuple[np.ndarray, list[str]]:
    """The class of each row, and what the classes are called. A missing label is unknown, as is a negative number.

    Whole numbers are classes as they are, false and true (no and yes) are 0 and 1, other texts are numbered in order.
    """
    if table.is_numeric(column):
        numbers = table.numbers(column)
        odd = (numbers != np.floor(numbers)) & ~np.isnan(numbers) | (numbers > 2**53)
        if odd.any():
            row = int(odd.argmax())
            raise table.wrong(column, row, f"is {numbers[row]:g}, but a label is a whole number 0, 1, 2, … or a text")
        found = np.where(numbers >= 0, numbers, UNKNOWN).astype(np.int64)
        return found, []
    text = table.texts(column)
    names = sorted(set(text.drop_nulls()))
    lower = {name.lower() for name in names}
    if lower <= {"false", "true"} or lower <= {"no", "yes"}:
        number = {name: TRUTH[name.lower()] for name in names}
        names = ["false", "true"] if lower <= {"false", "true"} else ["no", "yes"]
    else:
        number = {name: i for i, name in enumerate(names)}
    if len(number) > len(table) // 2 and len(number) > MOST_TEXTS:
        raise FedstructError(
            f"{table.name}: column '{column}' holds {len(number):,} different texts, too many for classes; "
            "is it the label?"
        )
    return np.array([UNKNOWN if name is None else number[name] for name in text], np.int64), names


def times(table: Table, column: str) -> np.ndarray:
    """Times as numbers: as they are, or seconds since 1970 where they are dates."""
    if not table.is_numeric(column):
        return dates(table, column)
    found = table.numbers(column)
    if np.isnan(found).any():
        raise table.wrong(column, int(np.isnan(found).argmax()), "is empty")
    return found


def dates(table: Table, column: str, form: str | None = None) -> np.ndarray:
    """Dates as seconds since 1970: of this form, or of the one that the first of them has."""
    import polars

    values = table.frame[column]
    if values.dtype == polars.String:
        values = _parsed(table.texts(column), form)
    if not values.dtype.is_temporal():
        raise FedstructError(f"{table.name}: column '{column}' must hold times, not {values.dtype}")
    if values.null_count():
        row = int(values.is_null().arg_max() or 0)
        field = table.texts(column)[row]
        says = "is empty" if field is None else f"is '{field}', but it must be a number or a date"
        raise table.wrong(column, row, says)
    seconds: np.ndarray = values.cast(polars.Datetime("us")).dt.timestamp("us").to_numpy() / 1e6
    return seconds


def _parsed(text: polars.Series, form: str | None) -> polars.Series:
    """Texts as dates; None where one is none."""
    import polars

    for reading in (text.str.to_datetime, text.str.to_date):
        try:
            found = reading(form, strict=False)
        except polars.exceptions.PolarsError:  # no form fits the first of them
            continue
        if found.null_count() < len(found) or form:
            return found
    return polars.Series([None] * len(text), dtype=polars.Datetime("us"))


def _numbers(table: Table, column: str, standardise: bool) -> np.ndarray:
    values = table.numbers(column)
    missing = np.isnan(values)
    if not standardise:
        if missing.any():
            raise table.wrong(column, int(missing.argmax()), "has no number; fill it, or let numbers be standardised")
        return values[:, None]
    known = values[~missing]
    # In units of the largest, so that no square is too large to be written.
    unit = abs(known).max(initial=0.0) or 1.0
    mean = (known / unit).mean() if len(known) else 0.0
    centred = np.where(missing, 0.0, values / unit - mean)
    spread = centred.std()
    # Equal numbers differ from their mean by what rounding leaves.
    scaled: np.ndarray = (centred / spread if spread > 1e-9 else centred * 0)[:, None]
    return scaled


def _one_hot(table: Table, column: str) -> np.ndarray:
    import polars

    text = table.texts(column)
    values = text.drop_nulls().unique().sort()
    if len(values) > MOST_TEXTS:
        numbers = text.cast(polars.Float64, strict=False)
        hint = "name the columns that are features, and leave it out"
        if numbers.null_count() < len(text) / 2:
            row = int((numbers.is_null() & text.is_not_null()).arg_max() or 0)
            hint = f"if it should hold numbers, correct '{text[row]}' in row {row + 1}"
        raise FedstructError(
            f"{table.name}: column '{column}' holds {len(values):,} different texts, too many for features; {hint}"
        )
    return np.stack([(text == value).fill_null(False).to_numpy() for value in values], axis=1).astype(np.float64)
