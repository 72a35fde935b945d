"""The wheel: what is in it, and that it runs where nothing but it and its requirements is installed."""

import importlib.util
import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

UNCLEAN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "FEDSTRUCT_DATA", "PIP_REQUIRE_VIRTUALENV")


def clean():
    """The environment without what would let the checkout, another installation or graph files shine through."""
    return {name: value for name, value in os.environ.items() if name not in UNCLEAN}


def succeeds(*command, cwd):
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, env=clean(), capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    # Where the build's only requirement is installed already, no isolated environment need be made for it.
    here = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    succeeds(sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", *here, "-w", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    modules = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src" / "fedstruct").rglob("*.py")}
    packaged = {name for name in names if ".dist-info/" not in name}
    presets = {f"fedstruct/experiments/presets/{name}.toml" for name in ("ours", "paper", "code")}
    report = {f"fedstruct/experiments/report/templates/{name}" for name in ("page.html", "page.css", "run.html")}
    assert packaged == modules | presets | report | {"fedstruct/py.typed"}
    assert wheel.name == "fedstruct-0.1.0-py3-none-any.whl"


def test_the_wheel_says_what_it_is_and_needs(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = archive.read(f"{info}/METADATA").decode()
        entry = archive.read(f"{info}/entry_points.txt").decode()
        assert any(name.startswith(info) and name.endswith("LICENSE") for name in archive.namelist())
    assert "Requires-Python: >=3.11" in metadata
    assert "License-Expression: Apache-2.0" in metadata
    assert "fedstruct = fedstruct.cli:main" in entry
    needed = {
        line.split(":")[1].split(">")[0].strip() for line in metadata.splitlines() if line.startswith("Requires-D")
    }
    for name in ("numpy", "scipy", "torch", "torch-geometric", "polars", "pydantic", "typer", "rich", "cryptography"):
        assert name in needed


def test_the_wheel_runs_in_a_clean_environment(wheel, tmp_path):
    """Installed with plain pip and the constraints that were tested together; run where no checkout is near."""
    place = tmp_path / "venv"
    venv.create(place, with_pip=True, system_site_packages=False)
    python, program = place / "bin" / "python", place / "bin" / "fedstruct"
    constraints = ROOT / "constraints.txt"
    succeeds(python, "-m", "pip", "install", "-q", "--prefer-binary", "-c", constraints, wheel, cwd=tmp_path)

    away = tmp_path / "away"
    away.mkdir()
    where = succeeds(python, "-c", "import fedstruct; print(fedstruct.__file__)", cwd=away).stdout
    assert Path(where.strip()).is_relative_to(place)
    version = succeeds(program, "--version", cwd=away)
    assert (version.stdout, version.stderr) == ("fedstruct 0.1.0\n", "")
    demo = succeeds(program, "demo", "--json", cwd=away)
    assert demo.stderr == ""
    assert len(json.loads(demo.stdout)["gains"]) == 5
    assert list(away.iterdir()) == []
