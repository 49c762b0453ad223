"""What a process counts, in one place; the names and labels are an interface.

Counting is plain arithmetic under a lock. prometheus_client is imported only by the process
that serves /metrics, so that a command line stays quick.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

Labels = tuple[str, ...]

LATENCY_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@dataclass(slots=True)
class Counter:
    """A number that only grows, per combination of labels."""

    name: str
    help: str
    labels: Labels = ()
    values: dict[Labels, float] = field(default_factory=dict[Labels, float])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *labels: str, by: float = 1) -> None:
        """Count `by` more."""
        with self.lock:
            self.values[labels] = self.values.get(labels, 0) + by

    def value(self, *labels: str) -> float:
        """What was counted so far."""
        return self.values.get(labels, 0)


@dataclass(slots=True)
class Gauge:
    """A number that is now so and then otherwise, per combination of labels."""

    name: str
    help: str
    labels: Labels = ()
    values: dict[Labels, float] = field(default_factory=dict[Labels, float])

    def set(self, value: float, *labels: str) -> None:
        """Say what it is now."""
        self.values[labels] = value

    def replace(self, values: dict[Labels, float]) -> None:
        """Say what all combinations are now; others vanish."""
        self.values = values


@dataclass(slots=True)
class Histogram:
    """How often something took how many seconds."""

    name: str
    help: str
    bounds: tuple[float, ...] = LATENCY_SECONDS
    total: float = 0.0
    counts: list[int] = field(default_factory=list[int])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, seconds: float) -> None:
        """Count one more."""
        with self.lock:
            self.counts[bisect_left(self.bounds, seconds)] += 1
            self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Upper bounds with how many were at most that, as Prometheus wants them."""
        names = [*(str(float(bound)) for bound in self.bounds), "+Inf"]
        return [(n, float(c)) for n, c in zip(names, accumulate(self.counts), strict=True)]


class Metrics:
    """Every series of the engine; a process fills those that are its own."""

    def __init__(self) -> None:
        self.attempts = Counter(
            "smithers_attempts", "Attempts that ended here, by how.", ("outcome",)
        )
        self.claims = Counter("smithers_claims", "Tasks claimed here.", ("queue",))
        self.claim_latency = Histogram(
            "smithers_claim_latency_seconds", "From ready to claimed, by the database's clock."
        )
        self.late_beats = Counter(
            "smithers_late_beats", "Beats acknowledged later than half a beat after they were due."
        )
        self.fenced = Counter("smithers_fenced_writes", "Writes refused because a token was stale.")
        self.suspensions = Counter(
            "smithers_suspensions", "Times that attempts were stopped because of a silent database."
        )
        self.slots = Gauge("smithers_slots", "Slots of this worker.", ("state",))
        self.reclaims = Counter("smithers_reclaims", "What was taken from dead owners.", ("what",))
        self.orphans = Counter("smithers_orphans_killed", "Processes killed without a live owner.")
        self.queue_depth = Gauge("smithers_queue_depth", "Tasks that could be claimed.", ("queue",))
        self.queue_age = Gauge(
            "smithers_queue_oldest_seconds", "Age of the oldest of them.", ("queue",)
        )
        self.runs = Gauge("smithers_runs", "Runs by status.", ("status",))
        self.frames = Counter("smithers_frames", "Frames committed here.")
        self.renders = Histogram("smithers_render_seconds", "Time to load, render and plan.")

    def all(self) -> Iterable[Counter | Gauge | Histogram]:
        """All series."""
        return vars(self).values()


METRICS = Metrics()
"""The counts of this process: what they describe belongs to the process, not to an object."""
