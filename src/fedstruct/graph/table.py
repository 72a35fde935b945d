"""A table as people keep it: a CSV or Parquet file, or a data frame. What is wrong in it is named by column and row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fedstruct.errors import FedstructError, unknown
from fedstruct.graph import text_table

if TYPE_CHECKING:
    import polars

NO_NUMBER = ("NA", "N/A", "na", "null", "NULL", "None")
"""What programs write in the place of a number that is missing; an empty field is missing anyway."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name. Rows count from 1, below the heading."""

    frame: polars.DataFrame
    name: str

    @classmethod
    def of(cls, given: Any, name: str) -> Self:
        """The table in a file, or the one that is given."""
        import polars

        if isinstance(given, polars.DataFrame):
            return cls(given, name)
        return cls(_read(Path(given)), str(given))

    def __len__(self) -> int:
        return self.frame.height

    @property
    def columns(self) -> list[str]:
        return self.frame.columns

    def texts(self, column: str) -> polars.Series:
        """A column as text without spaces around it; None where a field is empty."""
        import polars

        text = self._column(column).cast(polars.String).str.strip_chars()
        return text.replace("", None)

    def whole_texts(self, column: str) -> polars.Series:
        """A column as text that has a value in every row."""
        text = self.texts(column)
        if text.null_count():
            raise self.wrong(column, int(text.is_null().arg_max() or 0), "is empty")
        return text

    def is_numeric(self, column: str) -> bool:
        """Every value is a number, a truth value, or missing."""
        import polars

        values = self._column(column)
        if values.dtype == polars.String:
            text = self._without_missing(column)
            return text.cast(polars.Float64, strict=False).null_count() == text.null_count()
        return values.dtype.is_numeric() or values.dtype in (polars.Boolean, polars.Null)

    def numbers(self, column: str) -> np.ndarray:
        """A column as numbers; NaN where one is missing."""
        import polars

        values = self._column(column)
        if values.dtype == polars.String:
            values = self._without_missing(column)
        elif not self.is_numeric(column):
            raise FedstructError(f"{self.name}: column '{column}' must hold numbers, not {values.dtype}")
        found = values.cast(polars.Float64, strict=False)
        for bad in (found.is_null() & values.is_not_null(), found.is_infinite().fill_null(False)):
            if bad.any():
                row = int(bad.arg_max() or 0)
                raise self.wrong(column, row, f"is '{values[row]}', but it must be a finite number")
        return found.fill_null(float("nan")).to_numpy()

    def positive(self, column: str) -> np.ndarray:
        """A column of positive numbers, none of them missing."""
        numbers = self.numbers(column)
        bad = ~(numbers > 0)
        if bad.any():
            row = int(bad.argmax())
            says = "is empty" if np.isnan(numbers[row]) else f"is {numbers[row]:g}"
            raise self.wrong(column, row, f"{says}, but it must be a positive number")
        return numbers

    def wrong(self, column: str, row: int, says: str) -> FedstructError:
        """The error about one field; `row` counts from 0."""
        return FedstructError(f"{self.name}, row {row + 1}: column '{column}' {says}")

    def _without_missing(self, column: str) -> polars.Series:
        return self.texts(column).replace(list(NO_NUMBER), [None] * len(NO_NUMBER))

    def _column(self, column: str) -> polars.Series:
        if column not in self.frame.columns:
            raise unknown(f"column of {self.name}", column, self.frame.columns)
        return self.frame[column]


def _read(path: Path) -> polars.DataFrame:
    import polars

    if path.suffix not in (".parquet", ".pq"):
        return text_table.read(path)
    if not path.exists():
        raise FedstructError(f"there is no table {path}; check its path")
    try:
        return polars.read_parquet(path, glob=False)
    except (OSError, polars.exceptions.PolarsError) as error:
        why = str(error).strip().splitlines()[0]
        raise FedstructError(f"the table {path} cannot be read: {why}") from None
