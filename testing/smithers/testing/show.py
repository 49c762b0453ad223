"""A run as text: its tree with states, and all that explains a failed assertion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from smithers.testing.bodies import Call
from smithers.testing.rows import Row
from smithers.testing.store import RunStore
from smithers.workflow.frame import Entry, FrameStructure
from smithers.workflow.keys import NodeKey

_SHOWN: Final = 500


def tree_text(store: RunStore) -> str:
    """Give the tree of the last frame, indented, a node a line: `id: state`.

    A node in a later pass of its loop is `id[pass]`; a failed one has its error.
    """
    structure = store.structure
    if structure is None:
        return "(no frame yet)"
    return "\n".join(_lines(store, structure, structure.root, 0))


def explanation(store: RunStore, calls: Sequence[Call], unused: Sequence[str]) -> str:
    """Give the status, the error, the tree, what is awaited, and the calls."""
    parts = [f"run of {store.workflow.name!r}: {headline(store)}", tree_text(store)]
    blocked = [f"  {each['node_id']}: {_awaited(each)}" for each in store.last.get("blocked", ())]
    if blocked:
        parts += ["waits for", *blocked]
    if calls:
        parts += ["calls", *(f"  {_call(call)}" for call in calls)]
    if unused:
        parts.append(f"scripts never used: {', '.join(unused)}")
    return "\n".join(parts)


def headline(store: RunStore) -> str:
    """Give the status, and the error if there is one, in a line."""
    return f"{store.status.value}{_because(store.run['error'])}"


def _lines(store: RunStore, structure: FrameStructure, name: str, depth: int) -> Iterator[str]:
    entry = structure.nodes[name]
    yield "  " * depth + _line(store, name, entry)
    for child in cast("list[str]", entry.get("children", [])):
        yield from _lines(store, structure, child, depth + 1)


def _line(store: RunStore, name: str, entry: Entry) -> str:
    kind = str(entry["kind"])
    if "iteration" not in entry:
        cap = entry.get("cap")
        return kind.capitalize() + (f" (at most {cap})" if cap is not None else "")
    key: NodeKey = (name, int(str(entry["iteration"])))
    row = store.nodes.get(key) or Row(kind)
    state = f"{row.state.value}{_because(row.error)}"
    if kind == "loop":
        return f"Loop {name}, pass {key[1] + 1} of at most {entry['max']}: {state}"
    place = f"[{key[1]}]" if key[1] else ""
    return f"{name}{place}: {state}"


def _because(error: Mapping[str, object] | None) -> str:
    if not error:
        return ""
    message = str(error.get("message") or "").partition("\n")[0][:_SHOWN]
    return f" ({error.get('code')}: {message})"


def _awaited(blocked: Mapping[str, object]) -> str:
    due = f", due at {blocked['due_at']}" if blocked["due_at"] else ""
    return f"{blocked['reason']}: {blocked['message']}{due}"


def _call(call: Call) -> str:
    place = f"[{call.iteration}]" if call.iteration else ""
    ended = f"{call.error.code}: {call.error.message}" if call.error else "finished"
    return f"{call.node_id}{place} attempt {call.attempt}: {ended.partition(chr(10))[0][:_SHOWN]}"
