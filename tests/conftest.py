"""What every test has: one thread, the same hypothesis examples in every run, and the folder of graph files if any."""

import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

import fedstruct as fs
from fedstruct.graph.datasets import DATA_VARIABLE

torch.set_num_threads(1)

settings.register_profile("fedstruct", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fedstruct")

BESIDE = Path(__file__).parents[2] / "shared" / "datasets"
if BESIDE.is_dir():
    os.environ.setdefault(DATA_VARIABLE, str(BESIDE))


@pytest.fixture
def dataset():
    """Loads a public graph by name; the test is skipped where its file is not here."""

    def load(name):
        if fs.datasets.where(name) is None:
            pytest.skip(f"there is no {name}.npz: set {DATA_VARIABLE} to a folder that holds it")
        return fs.datasets.load(name)

    return load


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Every command is typed in an empty folder, with no graphs but those that a test makes."""
    (tmp_path / "graphs").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "graphs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"
