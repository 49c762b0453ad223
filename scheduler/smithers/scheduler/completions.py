"""Rows as they will be once some attempts have ended: what a fused step renders."""

from __future__ import annotations

from collections.abc import Sequence

from smithers.sql.rows import Json


def with_completions(snapshot: Json, completions: Sequence[Json]) -> Json:
    """Return the snapshot with these completed attempts applied; `snapshot` itself stays as it is.

    An item has node_id, iteration, attempt and output, as `complete_attempts` takes it. A node
    row is (node_id, iteration, state, kind, last_attempt, failures, abandoned, due_at,
    descriptor_hash, in_progress, error, detail).
    """
    if not completions:
        return snapshot
    done = {(item["node_id"], item["iteration"]): item for item in completions}
    nodes: list[list[object]] = []
    for row in snapshot["nodes"]:
        item = done.get((row[0], row[1]))
        if item is None:
            nodes.append(row)
        else:
            nodes.append(
                [*row[:2], "finished", row[3], item["attempt"], *row[5:9], False, *row[10:]]
            )
    outputs = {node_id: dict(passes) for node_id, passes in snapshot["outputs"].items()}
    for (node_id, iteration), item in done.items():
        outputs.setdefault(node_id, {})[str(iteration)] = item["output"]
    return {**snapshot, "nodes": nodes, "outputs": outputs}
