"""The errors that a user can mend."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FedstructError(Exception):
    """Something the user can put right: one sentence that says what, where and what to do."""


class RefusedMessage(FedstructError):
    """A message that a site does not accept: damaged, of another kind, too large or out of range."""


def unknown(what: str, name: str, known: Iterable[str], hint: str = "") -> FedstructError:
    """The error for a name that does not exist, with the nearest one that does.

    >>> print(unknown("method", "fedstrukt", ["fedstruct", "central"]))
    unknown method 'fedstrukt': did you mean 'fedstruct'?
    """
    known = list(known)
    ending = [k for k in known if k.endswith(f"-{name}")]
    near = ending if len(ending) == 1 else difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    advice = f"did you mean '{near[0]}'?" if near else f"choose one of {', '.join(sorted(known))}"
    return FedstructError(f"unknown {what} '{name}': {advice}{hint}")
