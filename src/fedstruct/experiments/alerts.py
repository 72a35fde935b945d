"""How many alerts can be looked into: so many nodes, or a share of them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

MUST_BE = "should be a whole number from 1, or a share such as 1%"


def alerts(given: object) -> int | str:
    """A number of alerts, or a share with its sign.

    >>> alerts("100"), alerts(" 1 % "), alerts("0.50%")
    (100, '1%', '0.5%')
    """
    text = str(given).strip()
    if isinstance(given, int | str) and not isinstance(given, bool):
        if re.fullmatch(r"\d{1,9}", text) and int(text) >= 1:
            return int(text)
        share = re.fullmatch(r"(\d{1,3}(?:\.\d{1,9})?)\s*%", text)
        if share and 0 < float(share[1]) <= 100:
            return f"{float(share[1]):.9f}".rstrip("0").rstrip(".") + "%"
    raise ValueError(MUST_BE)


Alerts = Annotated[int | str, BeforeValidator(alerts)]


def budget(wanted: int | str, nodes: int) -> int:
    """How many alerts that is among so many nodes; of a share, at least one.

    >>> budget(100, 4800), budget("1%", 4800), budget("1%", 20)
    (100, 48, 1)
    """
    if isinstance(wanted, int):
        return wanted
    return max(1, round(float(wanted.removesuffix("%")) / 100 * nodes))
