"""Experiment tracking: runs reported to MLflow while they go on."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from math import isfinite
from typing import Any, Self

from fedstruct.errors import FedstructError
from fedstruct.experiments.config import Experiment
from fedstruct.experiments.result import RunResult
from fedstruct.federation.watch import Watch
from fedstruct.methods.method import Method

EVERY = 1.0
"""Seconds between two reports of a run's rounds: a request for each would take longer than the round."""


class Tracker:
    """Is told of every run, as it begins, and as it ends; this one tells nobody."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Runs that have not finished are given up."""

    def begin(self, name: str, seed: int, experiment: Experiment, method: Method) -> Watch:
        return Watch()

    def finish(self, name: str, result: RunResult) -> None:
        pass


class MlflowTracker(Tracker):
    """Reports to the server or the database that MLFLOW_TRACKING_URI names, as MLflow itself does.

    Each seed is a run of its own, in the experiment that MLFLOW_EXPERIMENT_NAME names, or else `fedstruct`.
    """

    def __init__(self) -> None:
        if find_spec("mlflow") is None:
            raise FedstructError("--track mlflow needs MLflow, which is not installed: pip install 'fedstruct[track]'")
        with _sentence():
            from mlflow.tracking import MlflowClient

            logging.getLogger("mlflow").setLevel(logging.WARNING)
            self._client = MlflowClient()
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "fedstruct")
            known = self._client.get_experiment_by_name(name)
            self._experiment = known.experiment_id if known else self._client.create_experiment(name)
        self._open: dict[tuple[str, int], MlflowRun] = {}

    def __exit__(self, *_: object) -> None:
        for run in self._open.values():
            with suppress(FedstructError), _sentence():  # why they are given up is said already
                run.end("KILLED")

    def begin(self, name: str, seed: int, experiment: Experiment, method: Method) -> Watch:
        with _sentence():
            made = self._client.create_run(self._experiment, run_name=f"{name}, seed {seed}")
            run = self._open[name, seed] = MlflowRun(self._client, made.info.run_id)
            settings = experiment.model_dump(exclude={"options"}) | method.options.model_dump()
            run.params({**settings, "seed": seed})
        return run

    def finish(self, name: str, result: RunResult) -> None:
        with _sentence():
            run = self._open.pop((name, result.seed))
            run.figures(figures(result), step=0)
            run.end("FINISHED")


class MlflowRun(Watch):
    """One run, seen by MLflow."""

    def __init__(self, client: Any, run: str) -> None:
        self._client, self._run = client, run
        self._waiting: list[Any] = []
        self._sent = time.monotonic()

    def advance(self, done: int, of: int, **figures: float) -> None:
        with _sentence():
            self.figures(figures, step=done)
            if time.monotonic() - self._sent > EVERY:
                self._send()

    def params(self, settings: dict[str, Any]) -> None:
        from mlflow.entities import Param

        told = {key: value if isinstance(value, str) else json.dumps(value) for key, value in settings.items()}
        self._client.log_batch(self._run, params=[Param(key, value) for key, value in told.items()])

    def figures(self, figures: dict[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._waiting += [Metric(key, value, now, step) for key, value in figures.items() if isfinite(value)]

    def end(self, status: str) -> None:
        self._send()
        self._client.set_terminated(self._run, status)

    def _send(self) -> None:
        most = 1000  # MLflow takes no more at once
        while self._waiting:
            self._client.log_batch(self._run, metrics=self._waiting[:most])
            self._waiting = self._waiting[most:]
        self._sent = time.monotonic()


def tracker(name: str | None) -> Tracker:
    """The tracker that was asked for."""
    if name is None:
        return Tracker()
    if name != "mlflow":
        raise FedstructError(f"--track takes mlflow, not '{name}'; the history.jsonl of a run is always written")
    return MlflowTracker()


def figures(result: RunResult) -> dict[str, float]:
    """What a run came to, a name for each figure."""
    measures = ("test_accuracy", "validation_accuracy", "macro_f1", "auprc", "recall", "messages")
    found = {name: getattr(result, name) for name in measures}
    for what in ("seconds", "cpu_seconds", "bytes"):
        found |= {f"{what}_{phase}": value for phase, value in getattr(result, what).items()}
    if result.exposure is not None:
        found["inner_share_read_off"] = result.exposure["inner_share"]
    return {name: float(value) for name, value in found.items() if value is not None}


@contextmanager
def _sentence() -> Iterator[None]:
    """What goes wrong at MLflow, in one sentence: its errors are those of servers, databases and files."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except (MlflowException, ImportError, OSError) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise FedstructError(f"MLflow cannot be reported to: {why}; check MLFLOW_TRACKING_URI") from None
