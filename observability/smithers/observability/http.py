"""/metrics and /healthz of one process, served by a thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from smithers.observability.metrics import Counter, Gauge, Histogram, Metrics

if TYPE_CHECKING:
    from prometheus_client.core import Metric


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a process is well, and the facts behind it."""

    ok: bool
    facts: Mapping[str, object]


class MetricsServer:
    """Serves from its creation until `close`. Port 0 takes a free one, see `port`."""

    def __init__(self, port: int, metrics: Metrics, health: Callable[[], Health]) -> None:
        self._server = ThreadingHTTPServer(("", port), _handler(metrics, health))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def render(metrics: Metrics) -> bytes:
    """All series in the text format of Prometheus."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.registry import Collector

    class Series(Collector):
        def collect(self) -> Iterable[Metric]:
            return map(_family, metrics.all())

    registry = CollectorRegistry()
    registry.register(Series())
    return generate_latest(registry)


def _family(series: Counter | Gauge | Histogram) -> Metric:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    if isinstance(series, Histogram):
        return HistogramMetricFamily(
            series.name, series.help, buckets=series.buckets(), sum_value=series.total
        )
    kind = CounterMetricFamily if isinstance(series, Counter) else GaugeMetricFamily
    family = kind(series.name, series.help, labels=series.labels)
    for labels, value in list(series.values.items()):
        family.add_metric(labels, value)
    if not series.labels and not series.values:
        family.add_metric((), 0)
    return family


def _handler(metrics: Metrics, health: Callable[[], Health]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that http.server calls
            if self.path == "/metrics":
                self._answer(200, "text/plain; version=0.0.4; charset=utf-8", render(metrics))
            elif self.path == "/healthz":
                state = health()
                body = json.dumps({"ok": state.ok, **state.facts}).encode()
                self._answer(200 if state.ok else 503, "application/json", body)
            else:
                self._answer(404, "text/plain", b"try /metrics or /healthz\n")

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
            """Say nothing: probes come every few seconds."""

    return Handler
