"""Short names for runs that stand side by side: the method, and what else tells one from another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fedstruct.experiments.report.saved import Saved

SETTINGS = ("train", "validation", "split", "recall_at", "separate")
"""Settings that are in the configuration alone."""


def labels(runs: Sequence[Saved]) -> list[str]:
    """A name for each; no two are the same."""
    settings = [_settings(run) for run in runs]
    shown = [
        {
            **{k: v for k, v in mine.items() if _differ(k, settings)},
            **{
                k: v
                for k, v in run.result.options.items()
                if _differ(k, [r.result.options for r in runs if r.result.method == run.result.method])
            },
        }
        for run, mine in zip(runs, settings, strict=True)
    ]
    names = [
        ", ".join([run.result.method, *(f"{k} {_word(v)}" for k, v in told.items())])
        for run, told in zip(runs, shown, strict=True)
    ]
    twice = {name for name in names if names.count(name) > 1}
    return [f"{name} ({run.path})" if name in twice else name for name, run in zip(names, runs, strict=True)]


def _settings(run: Saved) -> dict[str, Any]:
    result = run.result.model_dump(include={"dataset", "parties", "partition", "preset"})
    return result | {key: run.config[key] for key in SETTINGS if key in run.config}


def _differ(key: str, settings: Sequence[dict[str, Any]]) -> bool:
    return len({json.dumps(s[key]) for s in settings if key in s}) > 1


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
