"""Choose the preset `ours` by `fedstruct tune`'s search, one method after the other, and write it into its file.

What was tried stays under runs/, in a folder for each dataset and method; one that is finished is not tried again.

    FEDSTRUCT_DATA=… python benchmarks/ours.py cora citeseer --methods all --budget 16 --seeds 2
"""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import fedstruct.experiments.presets as presets
from fedstruct.experiments.config import Experiment, setting
from fedstruct.experiments.process import prepare_process
from fedstruct.experiments.study import chosen
from fedstruct.experiments.tune import BEST, Tuning

FILE = Path(presets.__file__).with_name("ours.toml")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--methods", default="all")
    parser.add_argument("--budget", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--train", type=float, default=0.1)
    parser.add_argument("--by", default="accuracy")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="stays as it is")
    parser.add_argument("--out", type=Path, default=Path("runs") / "ours")
    asked = parser.parse_args()
    prepare_process()
    for dataset in asked.datasets:
        for method in chosen(asked.methods):
            folder = asked.out / f"{dataset}-{method}"
            if not (folder / "done").exists():
                folder.mkdir(parents=True, exist_ok=True)
                stays = dict(setting(text) for text in asked.set)
                experiment = Experiment(
                    dataset=dataset, method=method, seeds=asked.seeds, train=asked.train, options=stays
                )
                tuning = Tuning(experiment, asked.budget, by=asked.by)
                for _ in tuning.search(folder, asked.jobs):
                    pass
                (folder / "done").touch()
                print(dataset, method, tuning.as_json()["candidates"][0][tuning.measure], flush=True)
            keep(dataset, method, tomllib.loads((folder / BEST).read_text())["options"])


def keep(dataset: str, method: str, options: dict[str, Any]) -> None:
    """Put a recipe into the file, in the order of datasets and methods that it has."""
    text = FILE.read_text(encoding="utf-8")
    recipes = tomllib.loads(text)
    recipes.setdefault(dataset, {})[method] = options
    lines = [line for line in text.splitlines() if line.startswith("#")]
    for name, methods in recipes.items():
        for method_name, recipe in methods.items():
            lines += ["", f"[{name}.{method_name}]", *(f"{key} = {json.dumps(value)}" for key, value in recipe.items())]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
