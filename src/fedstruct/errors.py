"""The errors that a user can mend."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from reprlib import repr as shortened
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


PLAIN = {
    "int_parsing": "should be a whole number",
    "int_type": "should be a whole number",
    "int_from_float": "should be a whole number",
    "int_parsing_size": "should be smaller",
    "float_parsing": "should be a number",
    "float_type": "should be a number",
    "finite_number": "should be a finite number",
    "bool_parsing": "should be true or false",
    "bool_type": "should be true or false",
    "string_type": "should be a text",
}
"""What pydantic complains of, by its type, in words that say no more than the user has to know."""


class FedstructError(Exception):
    """Something the user can put right: one sentence that says what, where and what to do.

    >>> from fedstruct.graph import datasets
    >>> try:
    ...     datasets.load("no-such-folder/mine.npz")
    ... except FedstructError as error:
    ...     print(str(error).split(";")[0])
    there is no file no-such-folder/mine.npz
    """


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


def explained(error: ValidationError, known: Iterable[str], what: str) -> FedstructError:
    """The first of pydantic's complaints as one sentence; `known` are the names that there are."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"] if not str(part).startswith("function-")]
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return unknown(what, path[-1], known)
    message = first["msg"].removeprefix("Value error, ")
    message = PLAIN.get(first["type"], message)
    if not path:  # a complaint of the options together; it names them itself
        return FedstructError(message)
    message = re.sub(r"^(Input|Tuple) | after validation, not \d+$", "", message)
    return FedstructError(f"{what} '{path[0]}' is {shortened(first['input'])}, but it {_lower(message)}")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
