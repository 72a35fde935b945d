"""Names from outside as they may be shown: what moves a cursor or turns the direction of writing is seen, not done."""

from __future__ import annotations

import re

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tab and line break, and the marks that turn the direction of writing."""

LONGEST = 40
"""Letters of a name that are shown."""


def visible(text: str) -> str:
    """The text with such characters as Python writes them.

    >>> print(visible("north\\x1b[2J"), visible("\\u202etrap"))
    north\\x1b[2J \\u202etrap
    """
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def brief(name: str, longest: int = LONGEST) -> str:
    """A name on one line; of a long one, the beginning and the end.

    >>> brief("north"), brief("a" * 300 + "z", 9)
    ('north', 'aaaa…aaaz')
    """
    name = visible(name.replace("\n", "\\n").replace("\t", " "))
    half = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[:half]}…{name[-half:]}"
