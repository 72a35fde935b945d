"""The history of the runs in a folder: a line for each round, written while the run goes on."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from math import isfinite
from pathlib import Path

from fedstruct.atomic import replaced
from fedstruct.federation.watch import Watch


class History:
    """A file of JSON lines. A run that is killed leaves the rounds that it did; done again, it replaces them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[int, list[str]] = {}
        """Of each seed."""
        self._begun = False

    def read(self, seeds: Collection[str]) -> None:
        """Keep what is there of these seeds; the last line may have been cut short."""
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        for line in lines:
            try:
                seed = json.loads(line)["seed"]
            except json.JSONDecodeError:
                if line is lines[-1] and not line.endswith("\n"):
                    break
                raise
            if str(seed) in seeds:
                self._lines.setdefault(seed, []).append(line)

    def watch(self, seed: int) -> Watch:
        """Writes down each round of a run as it is done."""
        return Written(self, seed)

    def add(self, seed: int, entry: dict[str, float]) -> None:
        line = _line(seed, entry)
        self._lines.setdefault(seed, []).append(line)
        if self._begun:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
        else:
            self._write()

    def finish(self, seed: int, entries: Iterable[dict[str, float]]) -> None:
        """The whole history of a run that is done."""
        self._lines[seed] = [_line(seed, entry) for entry in entries]
        self._write()

    def _write(self) -> None:
        text = "".join(line for lines in self._lines.values() for line in lines)
        replaced(self.path, lambda part: part.write_text(text, encoding="utf-8"))
        self._begun = True


class Written(Watch):
    """Writes a run's figures into a history."""

    def __init__(self, history: History, seed: int) -> None:
        self._history, self._seed = history, seed

    def advance(self, done: int, of: int, **figures: float) -> None:
        if figures:
            self._history.add(self._seed, {"round": done, **figures})


def _line(seed: int, entry: dict[str, float]) -> str:
    finite = {key: value if isfinite(value) else None for key, value in entry.items()}
    return json.dumps({"seed": seed, **finite}) + "\n"
