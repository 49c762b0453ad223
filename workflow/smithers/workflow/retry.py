"""When to try again: exponential backoff with full jitter, as arithmetic.

Full jitter draws the delay evenly between nothing and the exponential ceiling, which
spreads clients best for the work it costs; the name and the comparison are Marc Brooker's,
"Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, Self

from smithers.workflow.errors import INVALID_VALUE, AuthorError

RETRIES: Final = 3
Jitter = Literal["full", "none"]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to wait before each further try; durations are seconds.

    Raises AuthorError (INVALID_VALUE) for figures that make no schedule.
    """

    initial: float = 1.0
    maximum: float = 300.0
    multiplier: float = 2.0
    jitter: Jitter = "full"

    def __post_init__(self) -> None:
        finite = all(0 <= each < 1e9 for each in (self.initial, self.maximum, self.multiplier))
        if not finite or self.multiplier < 1 or self.jitter not in ("full", "none"):
            raise AuthorError(
                INVALID_VALUE,
                f"{self} is no schedule: seconds are 0 or more, multiplier is 1 or more, "
                "jitter is 'full' or 'none'",
            )

    def ceiling(self, failures: int) -> float:
        """Give the longest delay in seconds after this many failed tries (1 or more)."""
        if failures < 1 or self.initial == 0:
            return 0.0
        # The exponent is bounded, so that the power of a long series can't overflow.
        growth = self.multiplier ** min(failures - 1, 64)
        return min(self.maximum, self.initial * growth)

    def delay(self, failures: int, chance: float) -> timedelta:
        """Give the delay after this many failed tries; `chance` in [0, 1) is drawn outside."""
        ceiling = self.ceiling(failures)
        seconds = ceiling * chance if self.jitter == "full" else ceiling
        return timedelta(seconds=seconds)

    def to_json(self) -> dict[str, object]:
        """Give the policy as a descriptor holds it."""
        return {
            "initial": self.initial,
            "maximum": self.maximum,
            "multiplier": self.multiplier,
            "jitter": self.jitter,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> Self:
        """Read a policy from a descriptor; raises AuthorError (INVALID_VALUE)."""
        figures = [body.get(name, 0) for name in ("initial", "maximum", "multiplier")]
        jitter: Jitter = "none" if body.get("jitter") == "none" else "full"
        numbers = [float(each) for each in figures if isinstance(each, int | float)]
        if len(numbers) != len(figures):
            raise AuthorError(INVALID_VALUE, f"a retry policy holds numbers, not {figures}")
        return cls(numbers[0], numbers[1], numbers[2], jitter)


def may_retry(failures: int, retries: int) -> bool:
    """Say whether a task that failed this often (the last one included) is tried again."""
    return failures <= retries
