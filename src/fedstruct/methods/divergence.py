"""Training that diverges ends in a sentence, and not in a model of NaN."""

from __future__ import annotations

from math import isfinite

from torch import Tensor

from fedstruct.errors import FedstructError


def must_be_finite(values: Tensor | float, what: str, round: int | None = None) -> None:
    """Refuse values, of which `what` is the name, that hold NaN or infinity.

    >>> must_be_finite(float("nan"), "the loss", 7)
    Traceback (most recent call last):
    fedstruct.errors.FedstructError: training diverged by round 7: the loss is not finite; lower lr or lr_structure
    """
    if not _all_finite(values):
        when = "" if round is None else f" by round {round}"
        raise FedstructError(f"training diverged{when}: {what} is not finite; lower lr or lr_structure")


def _all_finite(values: Tensor | float) -> bool:
    if isinstance(values, float):
        return isfinite(values)
    # A sum that is finite has finite terms, and takes a tenth of the time; only one that is not may have them too.
    return not values.numel() or isfinite(values.sum()) or all(isfinite(end) for end in values.aminmax())
