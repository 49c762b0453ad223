"""Renderer children on real and on bad workflow files; no database."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from smithers.bundle.build import build
from smithers.bundle.pack import pack
from smithers.bundle.store import Stored
from smithers.bundle.unpack import ensure
from smithers.process.child import ChildSpec, Spawner
from smithers.process.output import Pump
from smithers.scheduler.renderer import Renderer, RenderSettings
from smithers.workflow.errors import SmithersError
from support.waiting import until

HEAD = """
import os, sys, time, threading
from pathlib import Path
from pydantic import BaseModel
from smithers.workflow import Ctx, Node, Parallel, Sequence, Task, workflow

class Input(BaseModel):
    size: int = 1

class Out(BaseModel):
    n: int

def work(n: int) -> Out:
    return Out(n=n)

@workflow(input=Input)
def flow(ctx: Ctx[Input]) -> Node:
"""
GOOD = HEAD + "    return Sequence(Task('a', Out, run=work, args={'n': ctx.input.size}))\n"

ROWS: dict[str, Any] = {
    "now": "2026-01-01T00:00:00+00:00",
    "run": {
        "run_id": "r1",
        "workflow": "flow",
        "input": {"size": 2},
        "config": {},
        "status": "running",
        "wanted_seq": 1,
        "frame_no": 0,
    },
    "nodes": [],
    "outputs": {},
    "approvals": [],
    "human": [],
    "events": [],
    "signals": [],
    "timers": [],
}


class Lab:
    """Makes renderers for workflow texts, and knows the children that they had."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pump = Pump()
        self.pids: list[int] = []
        self.renderers: list[Renderer] = []
        self._spawner = Spawner(lambda: None, pump=self.pump)

    def spawn(self, spec: ChildSpec) -> Any:
        child = self._spawner.spawn(spec)
        self.pids.append(child.pid)
        return child

    def renderer(self, code: str, *, seconds: float = 20.0, memory: int = 1 << 30) -> Renderer:
        entry = self.folder / "checkout" / "flow.py"
        entry.parent.mkdir(exist_ok=True)
        (entry.parent / "pyproject.toml").touch()
        entry.write_text(code)
        bundle = build(entry)
        stored = Stored(bundle.manifest, pack(bundle.contents))
        folder = ensure(lambda _: stored, self.folder / "home", bundle.source_hash)
        settings = RenderSettings(seconds=seconds, memory_bytes=memory, home=self.folder / "home")
        renderer = Renderer(self.spawn, folder, settings)
        self.renderers.append(renderer)
        return renderer

    def close(self) -> None:
        for renderer in self.renderers:
            renderer.close()
        self.pump.close()


@pytest.fixture
def lab(tmp_path: Path) -> Generator[Lab, None, None]:
    lab = Lab(tmp_path)
    yield lab
    lab.close()
    assert not [pid for pid in lab.pids if Path(f"/proc/{pid}").exists()]


def render(renderer: Renderer, **run: object) -> dict[str, Any]:
    rows = {**ROWS, "run": {**ROWS["run"], **run}}
    frame = renderer.render("flow", rows, frames=[])
    assert frame is not None
    return frame


def failure(renderer: Renderer, **run: object) -> SmithersError:
    with pytest.raises(SmithersError) as caught:
        render(renderer, **run)
    return caught.value


def test_an_input_is_admitted_with_its_defaults(lab: Lab) -> None:
    renderer = lab.renderer(GOOD)
    admission = renderer.admit(None, {})
    assert (admission.workflow, admission.input) == ("flow", {"size": 1})
    with pytest.raises(SmithersError) as caught:
        renderer.admit("flow", {"size": "many"})
    assert caught.value.code == "INPUT_INVALID", (caught.value.message, caught.value.details)
    with pytest.raises(SmithersError) as caught:
        renderer.admit("other", {})
    assert caught.value.code == "WORKFLOW_NOT_FOUND"
    assert len(lab.pids) == 1


def test_a_render_gives_the_document_of_a_frame(lab: Lab) -> None:
    renderer = lab.renderer(GOOD)
    frame = render(renderer)
    assert [item["node_id"] for item in frame["ready"]] == ["a"]
    assert frame["status"] == "running"
    assert render(renderer) == frame
    assert len(lab.pids) == 1


def test_a_graph_needs_no_run(lab: Lab) -> None:
    frame = lab.renderer(GOOD).graph(None, {"size": 3})
    assert [item["node_id"] for item in frame["mount"]] == ["a"]


BAD = [
    ("    raise ValueError('no luck')\n", "RENDER_FAILED", "ValueError: no luck"),
    ("    sys.exit(3)\n", "RENDER_FAILED", "SystemExit: 3"),
    ("    os._exit(3)\n", "RENDER_FAILED", "exited with code 3"),
    ("    os.abort()\n", "RENDER_FAILED", "SIGABRT"),
    ("    os.kill(os.getpid(), 11)\n", "RENDER_FAILED", "SIGSEGV"),
    (
        "    os.closerange(3, 65536)\n    return Sequence()\n",
        "RENDER_FAILED",
        "exited with code 0",
    ),
    ("    return flow(ctx)\n", "RENDER_FAILED", "RecursionError"),
    ("    raise KeyboardInterrupt\n", "RENDER_FAILED", "KeyboardInterrupt"),
    ("    return 42\n", "INVALID_NODE", "int"),
    ("    return [Task('a', Out, run=work), 'x']\n", "INVALID_NODE", "str"),
    ("    return Sequence(Task('a', Out, run=lambda: 1))\n", "TASK_NOT_IMPORTABLE", "a"),
    ("    return Sequence(Task('', Out, run=work))\n", "INVALID_ID", ""),
    (
        (
            "    return Parallel(Task('a', Out, run=work, args={'n': 1}),\n"
            "                    Task('a', Out, run=work, args={'n': 2}))\n"
        ),
        "DUPLICATE_ID",
        "flow.py:45",
    ),
    (
        (
            "    class Evil(Exception):\n        def __str__(self): raise ValueError\n"
            "    raise Evil\n"
        ),
        "RENDER_FAILED",
        "Evil",
    ),
]


def test_a_bad_render_is_a_typed_error_and_the_next_one_works(lab: Lab) -> None:
    code = HEAD
    for number, (body, _, _) in enumerate(BAD):
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        code += f"    if ctx.run_id == 'bad{number}':\n{lines}"
    renderer = lab.renderer(code + "    return Sequence()\n")
    for number, (_, expected, words) in enumerate(BAD):
        error = failure(renderer, run_id=f"bad{number}")
        assert error.code == expected, error
        assert words in error.message
        assert str(lab.folder) not in f"{error.message} {error.details}"
        assert render(renderer)["status"] == "finished"
    assert len(lab.pids) == 1 + 4, "only what ended its process cost one"


def test_what_a_render_raised_has_its_place_and_traceback(lab: Lab) -> None:
    error = failure(lab.renderer(HEAD + "    raise ValueError('no luck')\n"))
    assert error.message == "flow.py:18: ValueError: no luck"
    assert "Traceback (most recent call last)" in str(error.details["traceback"])
    assert (error.details["path"], error.details["line"]) == ("flow.py", 18)


@pytest.mark.parametrize(
    ("code", "place"),
    [
        (HEAD + "    while True:\n        pass\n", "flow.py:"),
        (HEAD + "    time.sleep(3600)\n", "flow.py:18"),
        (HEAD + "    while True:\n        print('x' * 10000)\n", ""),
        ("import time\ntime.sleep(3600)\n", "flow.py:2"),
        (HEAD + "    import subprocess\n    subprocess.run(['sleep', '3600'])\n", "flow.py:19"),
    ],
)
def test_a_hang_ends_in_time_and_says_where(lab: Lab, code: str, place: str) -> None:
    renderer = lab.renderer(code, seconds=2.0)
    error = failure(renderer)
    assert error.code == "RENDER_TIMEOUT"
    assert place in str(error.details["where"])


def test_a_flood_of_output_is_no_answer_and_no_harm(lab: Lab) -> None:
    flood = "    for _ in range(300):\n        sys.stdout.write('{\"ok\": 1}' * 20000)\n"
    frame = render(lab.renderer(HEAD + flood + "    return Sequence()\n"))
    assert frame["status"] == "finished"


def test_memory_is_bounded(lab: Lab) -> None:
    code = HEAD + "    hoard = []\n    while True:\n        hoard.append(bytes(10_000_000))\n"
    error = failure(lab.renderer(code, memory=400_000_000))
    assert error.code == "RENDER_OUT_OF_MEMORY"
    assert "flow.py:20" in error.message


def test_a_leak_costs_a_new_child_and_no_run(lab: Lab) -> None:
    code = HEAD.replace("class Input", "HOARD = []\n\nclass Input") + (
        "    HOARD.append(b'x' * 60_000_000)\n    return Sequence()\n"
    )
    renderer = lab.renderer(code, memory=600_000_000)
    for _ in range(12):
        assert render(renderer)["status"] == "finished"
    assert 2 <= len(lab.pids) <= 6


def test_a_failed_import_is_tried_again_by_a_new_child(lab: Lab, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    renderer = lab.renderer(f"open({str(flag)!r}).close()\n" + GOOD)
    assert failure(renderer).code == "IMPORT_FAILED"
    flag.touch()
    assert render(renderer)["status"] == "running"


def test_processes_that_a_render_leaves_behind_end_with_it(lab: Lab, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    spawn = (
        "    import subprocess\n"
        "    p = subprocess.Popen(['sleep', '3600'], start_new_session=True)\n"
        f"    Path({str(note)!r}).write_text(str(p.pid))\n    return Sequence()\n"
    )
    renderer = lab.renderer(HEAD + spawn)
    render(renderer)
    pid = int(note.read_text())
    os.kill(pid, 0)
    renderer.close()
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_user_code_does_not_see_the_database_url(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMITHERS_DATABASE_URL", "postgresql://secret")
    code = HEAD + "    raise ValueError(os.environ.get('SMITHERS_DATABASE_URL', 'nothing'))\n"
    assert "nothing" in failure(lab.renderer(code)).message
