"""The root of every error that Smithers raises on purpose."""

from __future__ import annotations

from collections.abc import Mapping


class SmithersError(Exception):
    """An error with a stable code, a sentence for people, facts for programs, and a way on.

    `code` is UPPER_SNAKE and an interface; `message` is one sentence without the code;
    `details` is JSON-able; `hint` says what to do next, or is None.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        details: Mapping[str, object] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code: str = code
        self.message: str = message
        self.details: dict[str, object] = dict(details or {})
        self.hint: str | None = hint

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(
    cls: type[SmithersError], args: tuple[object, ...], state: dict[str, object]
) -> SmithersError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error
