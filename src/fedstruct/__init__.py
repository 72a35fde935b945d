"""fedstruct: train one node classifier on one graph with many owners.

>>> import fedstruct as fs
>>> graph = fs.generate.planted(nodes=300, seed=0)
>>> parts = fs.partition.random(graph, parties=3, seed=0)
>>> result = fs.run(fs.methods.FedStruct(rounds=5), parts, seed=0)
>>> result.ledger.bytes == sum(result.bytes.values())
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedstruct import methods
    from fedstruct.errors import FedstructError
    from fedstruct.experiments.protocol import prepared, split
    from fedstruct.experiments.result import RunResult
    from fedstruct.experiments.run import run
    from fedstruct.graph import datasets, generate, partition, tables
    from fedstruct.graph.graph import Graph
    from fedstruct.graph.party_graph import PartyGraph

__version__ = "0.1.0"

__all__ = [
    "FedstructError",
    "Graph",
    "PartyGraph",
    "RunResult",
    "datasets",
    "generate",
    "methods",
    "partition",
    "prepared",
    "run",
    "split",
    "tables",
]

_WHERE = {
    "FedstructError": "errors:FedstructError",
    "Graph": "graph.graph:Graph",
    "PartyGraph": "graph.party_graph:PartyGraph",
    "RunResult": "experiments.result:RunResult",
    "datasets": "graph.datasets",
    "generate": "graph.generate",
    "methods": "methods",
    "partition": "graph.partition",
    "prepared": "experiments.protocol:prepared",
    "run": "experiments.run:run",
    "split": "experiments.protocol:split",
    "tables": "graph.tables",
}


def __getattr__(name: str) -> Any:
    # Loaded when first used: torch takes seconds to import, and `fedstruct --help` needs none of it.
    if name not in _WHERE:
        raise AttributeError(f"module 'fedstruct' has no attribute '{name}'")
    module, _, attribute = _WHERE[name].partition(":")
    loaded = import_module(f"fedstruct.{module}")
    value = getattr(loaded, attribute) if attribute else loaded
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
