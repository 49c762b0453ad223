"""Random runs to their end: random trees, random order of events, one predicted ending."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from smithers.workflow import Ctx, Node, NoInput, Workflow, workflow
from smithers.workflow.frame import reconstruct
from support.workflow_ideal import Ending, fails, ideal, is_shown, without
from support.workflow_oracle import Cell, Oracle
from support.workflow_oracle import World as Rows
from support.workflow_trees import (
    Bits,
    Key,
    Spec,
    build,
    describe,
    leaf_of,
    signal_name,
    streams,
    tree,
    walk,
)
from support.workflow_world import World

STEPS = 600
# `SMITHERS_TEST_EXAMPLES=20 pytest tests/unit/workflow` looks twenty times as long.
SCALE = int(os.environ.get("SMITHERS_TEST_EXAMPLES", "1"))


def workflow_of(root: Spec) -> Workflow:
    """Give the workflow whose tree is a spec."""
    leaves = {spec.id: spec for spec, _ in walk(root) if spec.is_leaf}

    @workflow(name="random")
    def random(ctx: Ctx[NoInput]) -> Node | None:
        passes = {spec.id: ctx.iteration(spec.id) for spec, _ in walk(root) if spec.kind == "loop"}
        shown = {
            spec.id: spec.when is None or ctx.output_maybe(leaf_of(leaves[spec.when])) is not None
            for spec in leaves.values()
        }
        return build(root, passes, shown)

    return random


class Player:
    """Plays workers, people and the clock in a random order."""

    def __init__(self, root: Spec, bits: Bits, *, cap: int | None, keep: bool) -> None:
        self.root, self.bits = root, bits
        config = {"max_concurrency": cap} if cap else {}
        self.world = World(workflow_of(root), config=config, keep=keep)
        self.cap = cap
        self.specs = {spec.id: spec for spec, _ in walk(root)}
        self.retried: set[Key] = set()

    def spec(self, key: Key) -> Spec:
        """Give the spec of a key."""
        return self.specs[key[0].partition("@@")[0]]

    def play(self) -> str:
        """Go on until the run ends; give its status."""
        for _ in range(STEPS):
            self.frame()
            if self.world.status in ("finished", "failed"):
                return self.world.status
            # Several facts may come between two frames.
            for _ in range(1 + self.bits.next(3)):
                self.fact()
        raise AssertionError("the run doesn't end")

    def frame(self) -> None:
        """Commit a frame and check what always holds."""
        before = {key: row.state for key, row in self.world.nodes.items()}
        doc = self.world.frame()
        flying = any(row.in_progress for row in self.world.nodes.values())
        assert not (flying and self.world.status in ("finished", "failed"))
        ready = [(each["node_id"], each["iteration"]) for each in doc["ready"]]
        assert all(before.get(key) != "finished" for key in ready)
        if ready:
            self.check_order(ready)
        self.check_caps()
        assert self.world.settle().decision.ready == ()

    def check_order(self, ready: list[Key]) -> None:
        """Check that nothing in the tree stands before what was made ready."""
        cells = {key: Cell(row.state.value) for key, row in self.world.nodes.items()}
        whole = Oracle(Rows(self.root, cells))
        hidden = {spec.id for spec in self.specs.values() if not is_shown(whole, spec)}
        shown = Oracle(Rows(without(self.root, hidden), cells))
        specs = {shown.key(spec): spec for spec in shown.rowed(shown.world.root)}
        for key in ready:
            assert shown.may_begin(specs[key]), key

    def check_caps(self) -> None:
        """Check that no group and no run holds more than its cap."""
        busy = [key for key, row in self.world.nodes.items() if row.state == "ready"]
        assert self.cap is None or len(busy) <= self.cap
        for spec, _ in walk(self.root):
            if spec.cap is not None:
                inside = {each.id for each, _ in walk(spec)}
                assert sum(self.spec(key).id in inside for key in busy) <= spec.cap

    def fact(self) -> None:
        """Let one thing happen that can happen now."""
        world = self.world
        options: list[tuple[str, Key]] = [("claim", key) for key in world.ready()]
        options += [("end", key) for key in world.running()]
        options += [
            ("decide", key)
            for key, row in world.approvals.items()
            if row["decision"] is None and world.state(*key) == "waiting-approval"
        ]
        options += [("answer", k) for k, r in world.humans.items() if r["status"] == "pending"]
        options += [("signal", k) for k, row in world.nodes.items() if row.state == "waiting-event"]
        timed = [k for k, row in world.nodes.items() if row.due_at or row.state == "waiting-timer"]
        options += [("time", key) for key in timed[:1]]
        if options:
            self.do(*options[self.bits.next(len(options))])

    def do(self, what: str, key: Key) -> None:
        """Let it happen."""
        world, bad = self.world, fails(self.spec(key))
        match what:
            case "claim":
                world.claim(*key)
            case "end":
                self.end(key, bad=bad)
            case "decide":
                spec = self.spec(key)
                world.decide(*key, approved=not (bad and spec.kind == "approval"))
            case "answer":
                world.answer(*key, response={"nothing": 1} if bad else {"text": "x"})
            case "signal":
                world.signal(signal_name(self.spec(key)), {"k": 1})
            case _:
                # No wait expires: its timeout is longer than any that a timer passes.
                self.sleep()

    def sleep(self) -> None:
        """Let the time pass that timers and retries need, but no wait with a timeout."""
        for row in self.world.nodes.values():
            if row.state == "waiting-event":
                row.due_at = None if row.due_at is None else row.due_at.replace(year=2040)
        for each in (*self.world.approvals.values(), *self.world.humans.values()):
            each["due_at"] = None
        self.world.pass_time(60)

    def end(self, key: Key, *, bad: bool) -> None:
        """End an attempt: well, badly, or to be tried again."""
        odd = self.spec(key).fate in (8, 9) and key not in self.retried
        if odd:
            self.retried.add(key)
            if self.spec(key).fate == 8:
                self.world.fail(*key, retry_in=30)
            else:
                self.world.abandon(*key)
        elif bad:
            self.world.fail(*key)
        else:
            self.world.complete(*key, n=1)


def ended(world: World) -> Ending:
    """Give how a run ended."""
    error = world.run["error"] or {}
    return Ending(
        world.status,
        stuck=error.get("code") in ("RUN_STUCK", "DEPENDENCY_MISSING"),
        done={key for key, state in world.states().items() if state == "finished"},
        skipped={key for key, state in world.states().items() if state == "skipped"},
    )


@given(
    streams(100),
    streams(150),
    st.sampled_from([None, None, 1, 2]),
    st.booleans(),
)
@settings(
    deadline=None,
    max_examples=300 * SCALE,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_a_run_ends_as_the_oracle_says(
    shape: bytes, order: bytes, cap: int | None, keep: bool
) -> None:
    root = tree(shape)
    note(describe(root))
    expected = ideal(root)
    note(str(expected))
    player = Player(root, Bits(order), cap=cap, keep=keep)
    player.play()
    world = player.world
    found = ended(world)
    if expected.status == "finished":
        assert found == expected
    else:
        assert (found.status, found.stuck) == (expected.status, expected.stuck)
    assert all(count == 1 for count in world.completions.values())
    check_frames(world)


def check_frames(world: World) -> None:
    """Check that the stored frames give the last structure."""
    rows = world.snapshot().frames
    assert reconstruct(rows) == world.structure
