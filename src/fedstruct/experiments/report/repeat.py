"""The command that repeats what a folder's configuration describes."""

from __future__ import annotations

import json
import shlex
from typing import Any

from fedstruct.experiments.config import Experiment

FLAGS = {"parties": "--parties", "partition": "--partition", "seeds": "--seeds", "preset": "--preset",
         "train": "--train", "validation": "--val", "split": "--split", "recall_at": "--recall-at"}  # fmt: skip


def command(config: dict[str, Any]) -> str:
    """What to type for it; what is as it is by default is left out.

    >>> command({"dataset": "cora", "method": "fedstruct", "seeds": 10, "preset": "ours", "options": {"prune": 50}})
    'fedstruct run cora --seeds 10 --set prune=50'
    >>> command({"dataset": "my graph.npz", "methods": ["fedstruct", "fedsgd-mlp"], "over": {"train": [0.1, 0.2]}})
    "fedstruct sweep 'my graph.npz' --over train=0.1,0.2 --methods fedstruct,fedsgd-mlp"
    """
    defaults = {name: field.default for name, field in Experiment.model_fields.items()}
    over = config.get("over", {})
    kind = "sweep" if over else "compare" if "methods" in config else "run"
    words = ["fedstruct", kind, str(config.get("dataset", ""))]
    for key, values in over.items():
        words += ["--over", f"{key}={','.join(map(_typed, values))}"]
    if "methods" in config:
        words += ["--methods", ",".join(map(str, config["methods"]))]
    elif config.get("method", defaults["method"]) != defaults["method"]:
        words += ["--method", str(config["method"])]
    for key, flag in FLAGS.items():
        if config.get(key, defaults[key]) != defaults[key]:
            words += [flag, str(config[key])]
    words += ["--separate"] if config.get("separate") and kind == "run" else []
    for key, value in config.get("options", {}).items():
        words += ["--set", f"{key}={_typed(value)}"]
    return shlex.join(words)


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
