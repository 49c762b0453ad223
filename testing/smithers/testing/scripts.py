"""Scripts: what a test says of each attempt of a task, or of each question to a person.

A script is one answer for every time, a list with one for each time, or a function that gives
one. An exception, given or raised, is a failure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import cast

from pydantic import BaseModel

from smithers.testing.awaiting import awaited
from smithers.testing.errors import SCRIPT_EXHAUSTED, SCRIPT_INVALID, HarnessError
from smithers.testing.outcome import raised
from smithers.workflow.attempts import AttemptError
from smithers.workflow.keys import author_id
from smithers.workflow.models import dump


class Scripts:
    """The scripts of one parameter (`agents=`, `tasks=`, …) by task id."""

    def __init__(self, parameter: str, given: Mapping[str, object] | None) -> None:
        self._parameter = parameter
        self._given = dict(given or {})
        self._used: dict[str, int] = {}

    def __contains__(self, node_id: object) -> bool:
        return isinstance(node_id, str) and self._name(node_id) is not None

    def unused(self) -> list[str]:
        """Give the ids that were never asked for, as `parameter['id']`."""
        names = [name for name in self._given if name not in self._used]
        return [f"{self._parameter}[{name!r}]" for name in names]

    def next(self, node_id: str) -> object:
        """Give what the script of a node says this time, uncalled.

        Raises HarnessError (SCRIPT_EXHAUSTED), naming the node.
        """
        name = self._name(node_id)
        assert name is not None, node_id
        script = self._given[name]
        count = self._used.get(name, 0)
        self._used[name] = count + 1
        if not isinstance(script, list):
            return script
        answers = cast("list[object]", script)
        if count < len(answers):
            return answers[count]
        raise HarnessError(
            SCRIPT_EXHAUSTED,
            f"{self._parameter}[{name!r}] has {len(answers)} answers, and {node_id!r} "
            f"asks for number {count + 1}",
            details={"node_id": node_id, "answers": len(answers)},
            hint="Give one for each attempt and each pass, or one value without a list.",
        )

    def _name(self, node_id: str) -> str | None:
        """Give the key of a node's script: its whole id, else the author's."""
        names = (node_id, author_id(node_id))
        return next((name for name in names if name in self._given), None)


def play(said: object, code: str, *args: object, **keywords: object) -> object:
    """Do what a script says: call a function, raise an exception, give a value.

    `code` is the failure's for exceptions without one of their own. An AssertionError of a
    function is the test's and comes through. Raises AttemptError.
    """
    if isinstance(said, BaseException):
        raise raised(said, code)
    if isinstance(said, type) and issubclass(said, BaseException):
        raise raised(said(), code)
    if isinstance(said, BaseModel) or not callable(said):
        return said
    function = cast("Callable[..., object]", said)
    try:
        return awaited(function(*args, **keywords))
    except (AssertionError, HarnessError, AttemptError):
        raise
    except (Exception, SystemExit) as error:
        raise raised(error, code) from error


def answer_fields(node_id: str, answer: object) -> Mapping[str, object]:
    """Give a scripted answer as the JSON object that an agent would print.

    Raises HarnessError (SCRIPT_INVALID).
    """
    try:
        if isinstance(answer, BaseModel):
            return dump(answer)
        if isinstance(answer, Mapping):
            return cast("dict[str, object]", json.loads(json.dumps(dict(answer))))
        problem = f"is a {type(answer).__name__}"
    except (TypeError, ValueError) as error:
        problem = f"is no JSON: {error}"
    raise HarnessError(
        SCRIPT_INVALID,
        f"the scripted answer of {node_id!r} {problem}",
        details={"node_id": node_id},
        hint="Give a model, a dict of its fields, an exception, or a function that gives one.",
    )
