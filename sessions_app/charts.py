"""Shapes of small charts, in percent of their box: CSS stretches the box, so a chart fits any width.

Numbers leave as strings, because a template would write them with the reader's decimal comma.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FULL = 100
ROUND = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)


def share(value: float, of: float) -> str:
    """`value` in percent of `of`, for a style or a path."""
    return f"{FULL * value / of:.2f}" if of else "0"


def ceiling(values: Iterable[float | None]) -> float:
    """Where an axis ends: the smallest round number that no value exceeds; 1 where there is none."""
    greatest = max((value for value in values if value is not None), default=0)
    if greatest <= 0:
        return 1
    unit = 10.0 ** math.floor(math.log10(greatest))
    return next(step * unit for step in ROUND if greatest <= step * unit)


@dataclass(frozen=True, slots=True)
class Line:
    """A line over equally wide columns, as two SVG paths in a box of `columns` by 100."""

    columns: int
    path: str  # broken where a value is missing
    dots: str  # of no length: a round line cap makes each a dot, whatever the box is stretched to
    top: float

    @classmethod
    def through(cls, values: Sequence[float | None], top: float | None = None) -> Line:
        """The line through `values`; `top` is the value at the upper edge."""
        top = top or ceiling(values)
        path: list[str] = []
        dots: list[str] = []
        is_drawing = False
        for column, value in enumerate(values):
            if value is not None:
                point = f"{column + 0.5} {FULL - FULL * value / top:.2f}"
                path.append(f"{'L' if is_drawing else 'M'}{point}")
                dots.append(f"M{point}h0")
            is_drawing = value is not None
        return cls(len(values), "".join(path), "".join(dots), top)
