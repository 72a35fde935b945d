"""The folder that a run leaves: configuration, results, history and ledger."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from fedstruct.atomic import replaced
from fedstruct.errors import FedstructError
from fedstruct.experiments.history import History
from fedstruct.federation.ledger import COLUMNS, NUMBERS, TEXTS

CONFIG, ABOUT, RESULT = "config.toml", "about.json", "result.json"
HISTORY, LEDGER = "history.jsonl", "ledger.parquet"

SUMMED = frozenset({"seed", "test_accuracy", "macro_f1", "seconds", "cpu_seconds", "bytes"})
"""What the summary of several runs needs of each."""


class Folder:
    """Claims an empty folder before anything runs, and holds the configuration and the results of what runs then.

    With `resume`, it may be a folder that was claimed with the same configuration before.
    """

    def __init__(self, path: Path | None, name: str, config: str, resume: bool = False) -> None:
        self.path = path if path is not None else _fresh(Path("runs"), name)
        self._claimed = self._made = False
        """Whether the folder is ours to give back, and whether it is ours to remove."""
        try:
            if resume and (self.path / CONFIG).is_file():
                if (self.path / CONFIG).read_bytes() != config.encode():
                    raise FedstructError(f"{self.path} holds runs of another {CONFIG}; give another --out")
                return
            if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
                raise FedstructError(f"{self.path} exists and is not an empty folder; give another --out")
            self._claimed, self._made = True, not self.path.exists()
            self.path.mkdir(parents=True, exist_ok=True)
            replaced(self.path / CONFIG, lambda part: part.write_text(config, encoding="utf-8"))
        except OSError as error:
            self._give_back()
            raise FedstructError(
                f"the run folder {self.path} cannot be written: {error.strerror or error}; give another --out"
            ) from None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep every other process out; the system lets go when this one ends, however it ends."""
        if sys.platform == "win32":
            yield
            return
        import fcntl

        lock = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise FedstructError(
                f"another process is at work in {self.path}; wait for its end, or give another --out"
            ) from None
        finally:
            os.close(lock)

    def save_result(self, result: dict[str, Any]) -> None:
        """Write the results so far."""
        with self._writing():
            replaced(self.path / RESULT, lambda part: part.write_text(json.dumps(result, indent=2) + "\n"))

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Give the folder back where the block fails before anything is saved; who stops it keeps the rounds so far."""
        try:
            yield
        except BaseException as error:
            unsaved = {CONFIG, ABOUT, HISTORY} if isinstance(error, Exception) else {CONFIG, ABOUT}
            for folder in [entry for entry in self.path.iterdir() if entry.is_dir()]:
                _discard(folder, unsaved)
                with suppress(OSError):  # it holds runs
                    folder.rmdir()
            self._give_back(unsaved)
            raise

    def _give_back(self, unsaved: Set[str] = frozenset({CONFIG})) -> None:
        """Leave what was there before the folder was claimed."""
        if not self._claimed:
            return
        with suppress(OSError):
            _discard(self.path, unsaved)
            if self._made:
                self.path.rmdir()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        import polars

        try:
            yield
        except (OSError, polars.exceptions.PolarsError) as error:
            why = str(getattr(error, "strerror", None) or error).splitlines()[0]
            raise FedstructError(
                f"writing to {self.path} failed: {why}; the runs that result.json lists are kept"
            ) from None


class RunFolder(Folder):
    """The folder of one experiment; each finished run is written at once, so that none is lost."""

    def __init__(
        self, path: Path | None, name: str, config: str, about: dict[str, Any] | None = None, resume: bool = False
    ) -> None:
        super().__init__(path, name, config, resume)
        self.runs: list[dict[str, Any]] = []
        """Runs that were there before, as JSON."""
        self.history = History(self.path / HISTORY)
        self._before: list[Any] = []
        """The ledger of the runs that are saved, read again when one more is added to it."""
        if about is not None and not any((self.path / name).exists() for name in (ABOUT, RESULT)):
            text = json.dumps(about, indent=2) + "\n"
            try:
                with self._writing():
                    replaced(self.path / ABOUT, lambda part: part.write_text(text, encoding="utf-8"))
            except FedstructError:
                self._give_back()
                raise
        if resume and (self.path / RESULT).is_file():
            self._read()

    def _read(self) -> None:
        """What was saved in full: the runs that the results list."""
        import polars

        try:
            self.runs = read_result(self.path)["runs"]
            seeds = [str(run["seed"]) for run in self.runs if run.keys() >= SUMMED]
            if len(seeds) < len(self.runs):
                raise ValueError("a run lacks figures")
            book = read_ledger(self.path)
            of_run = polars.col("run").cast(polars.String).str.extract(r"-(\d+)$")
            self._before = [book.lazy().filter(of_run.is_in(seeds))]
            self.history.read(seeds)
        except (FedstructError, OSError, ValueError, TypeError, KeyError, AttributeError):
            raise FedstructError(
                f"what {self.path} holds is damaged and cannot be gone on with; remove that folder, and its runs are "
                "done again"
            ) from None

    def save(self, run: Any, summary: dict[str, Any]) -> None:
        """Add one run; `summary` is the experiment so far."""
        import polars

        with self._writing():
            self.history.finish(run.seed, run.history)
            texts = polars.col(TEXTS).cast(polars.String)
            rows = polars.concat([rows.with_columns(texts) for rows in (*self._before, run.ledger.coded().lazy())])
            replaced(self.path / LEDGER, lambda part: rows.sink_parquet(part))
            self._before = [polars.scan_parquet(self.path / LEDGER, glob=False)]
        # Last, because it says which runs there are: what the others hold beyond it was not saved in full.
        self.save_result(summary)


def read_result(path: Path) -> dict[str, Any]:
    """The results in a run folder."""
    try:
        result: dict[str, Any] = json.loads((path / RESULT).read_text(encoding="utf-8"))
        return result
    except FileNotFoundError:
        raise FedstructError(f"{path} is not a run folder: it has no {RESULT}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise FedstructError(f"{path / RESULT} cannot be read: {error}") from None


def read_ledger(path: Path) -> Any:
    """The ledger in a run folder, as a table; its texts as categories, since there may be millions of rows."""
    import polars

    try:
        saved = polars.scan_parquet(path / LEDGER, glob=False).select(COLUMNS)
        for name, kind in saved.collect_schema().items():
            if kind != (polars.Int64 if name in NUMBERS else polars.String):
                raise _not_of_a_ledger(path, name)
        book = saved.with_columns(polars.col(TEXTS).cast(polars.Categorical)).collect(engine="streaming")
    except (FileNotFoundError, NotADirectoryError):
        raise FedstructError(f"{path} is not a run folder: it has no {LEDGER}") from None
    except (OSError, polars.exceptions.PolarsError) as error:
        raise FedstructError(f"{path / LEDGER} cannot be read: {error}") from None
    for column in book:
        if column.null_count():
            raise _not_of_a_ledger(path, column.name)
    return book


def _not_of_a_ledger(path: Path, column: str) -> FedstructError:
    return FedstructError(f"{path / LEDGER} cannot be read: its column '{column}' is not that of a ledger")


def _fresh(parent: Path, name: str) -> Path:
    stamp = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    path, more = parent / stamp, 2
    while path.exists():
        path, more = parent / f"{stamp}-{more}", more + 1
    return path


def _discard(folder: Path, unsaved: Set[str]) -> None:
    """Remove these files, where there is nothing else."""
    entries = list(folder.iterdir())
    if {entry.name for entry in entries} <= unsaved:
        for entry in entries:
            entry.unlink(missing_ok=True)
