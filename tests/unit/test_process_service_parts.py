"""Waking, stopping, pacing: the small parts of a process's life."""

from __future__ import annotations

import os
import signal
import threading
import time
import urllib.request

from smithers.observability.http import Health, MetricsServer
from smithers.observability.metrics import Metrics
from smithers.process.pace import LISTENING_SECONDS, LONGEST_SECONDS, Pace
from smithers.process.signals import stop_on_signals
from smithers.process.wake import Stop, Wake


def test_a_wish_before_the_wait_is_not_lost() -> None:
    wake = Wake()
    wake.set()
    wake.set()
    assert wake.wait(20)
    assert not wake.wait(0)
    wake.close()
    wake.set()


def test_a_second_signal_hurries_and_handlers_are_put_back() -> None:
    wake = Wake()
    stop = Stop(wake)
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals(stop):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop
        assert stop.wait(20)
        assert wake.wait(20)
        assert not stop.hurried
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.hurried
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_wakes_a_main_thread_that_waits() -> None:
    wake = Wake()
    stop = Stop(wake)
    with stop_on_signals(stop):
        timer = threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGTERM))
        started = time.monotonic()
        timer.start()
        assert wake.wait(60)
        assert time.monotonic() - started < 30
        timer.join()


def test_polling_slows_down_while_there_is_nothing() -> None:
    pace = Pace()
    waits = [pace.idle(listening=False) for _ in range(12)]
    assert waits[:3] == [0.02, 0.04, 0.08]
    assert waits[-1] == LONGEST_SECONDS
    assert pace.idle(listening=True) == LISTENING_SECONDS
    pace.worked()
    assert pace.idle(listening=True) == 0.02
    assert pace.idle(listening=True) == LISTENING_SECONDS
    assert pace.idle(listening=False) == 0.02


def test_metrics_and_health_are_served() -> None:
    metrics = Metrics()
    metrics.attempts.add("finished", by=3)
    metrics.claim_latency.observe(0.02)
    metrics.queue_depth.set(7, 'a"b')
    health = [True]
    server = MetricsServer(0, metrics, lambda: Health(ok=health[0], facts={"kind": "test"}))
    address = f"http://127.0.0.1:{server.port}"
    with urllib.request.urlopen(f"{address}/metrics") as answer:
        text = answer.read().decode()
    assert 'smithers_attempts_total{outcome="finished"} 3.0' in text
    assert 'smithers_claim_latency_seconds_bucket{le="0.025"} 1.0' in text
    assert 'smithers_queue_depth{queue="a\\"b"} 7.0' in text
    assert "smithers_frames_total 0.0" in text
    with urllib.request.urlopen(f"{address}/healthz") as answer:
        assert b'"ok": true' in answer.read()
    server.close()
