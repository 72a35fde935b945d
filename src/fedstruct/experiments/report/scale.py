"""Where values stand on an axis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, log10


@dataclass(frozen=True)
class Scale:
    """An axis from one round number to another, with a few round numbers between."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, values: Iterable[float], most: int = 5) -> Scale:
        """The shortest axis in steps of 1, 2 or 5 that holds the values.

        >>> Scale.over([0.31, 0.86]), Scale.over([40, 120]).ticks[1:]
        (Scale(low=0.2, high=1.0, ticks=(0.2, 0.4, 0.6, 0.8, 1.0)), (60, 80, 100, 120))
        """
        known = list(values)
        low, high = min(known, default=0.0), max(known, default=1.0)
        if high - low <= 1e-9 * max(abs(low), abs(high)):
            low, high = low - 0.01 * (abs(low) or 1), high + 0.01 * (abs(high) or 1)
        least = (high - low) / (most - 1)
        power = floor(log10(least))
        for factor in (1, 2, 5, 10, 20, 50):
            step = float(f"{factor}e{power}")
            first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
            if last - first < most:
                break
        digits = max(0, -floor(log10(step)))
        ticks = tuple(round(i * step, digits) for i in range(first, last + 1))
        whole = all(tick == int(tick) for tick in ticks)
        ticks = tuple(int(tick) for tick in ticks) if whole else ticks
        return cls(ticks[0], ticks[-1], ticks)

    @classmethod
    def decades(cls, values: Iterable[float]) -> Scale:
        """A logarithmic axis from one power of ten to another; its values are exponents.

        >>> Scale.decades([0.004, 2.0])
        Scale(low=-3, high=1, ticks=(1, 0, -1, -2, -3))
        """
        known = [log10(value) for value in values]
        low, high = floor(min(known)), ceil(max(known))
        high = max(high, low + 1)
        step = 1 + (high - low - 1) // 6
        return cls(low, high, tuple(range(high, low - 1, -step)))

    def at(self, value: float) -> float:
        """The place of a value, in percent of the axis."""
        return round(100 * (value - self.low) / (self.high - self.low), 2)
