"""Read which modules a source file imports, without running it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from smithers.bundle.errors import SYNTAX_ERROR, BundleError


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module.

    `module` is its absolute dotted name. `names` may be submodules of it or mere attributes;
    `star` says that the names in its `__all__` are taken too.
    """

    module: str
    names: tuple[str, ...] = ()
    star: bool = False


def parse(content: bytes, *, path: str) -> ast.Module:
    """Parse a source file; `path` is for the message. Raises SYNTAX_ERROR with path and line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a user's file is for their linter
            return ast.parse(content, filename=path)
    except SyntaxError as error:
        line = error.lineno or 0
        reason = error.msg
        cause: Exception = error
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes; nested too deep
        line, reason, cause = 0, str(error) or "too deeply nested", error
    where = f"{path}:{line}" if line else path
    raise BundleError(
        SYNTAX_ERROR, f"{where}: {reason}", details={"path": path, "line": line}
    ) from cause


def find_imports(tree: ast.Module, *, package: str) -> Iterator[Import]:
    """Yield every import in a module, also those in functions and branches.

    `package` is what a relative import starts from: the module's own name for an `__init__`, else
    its parent, "" at the top. Calls of `import_module` and `__import__` with a literal name
    count.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                yield from (Import(alias.name) for alias in aliases)
            case ast.ImportFrom(module=module, names=aliases, level=level):
                absolute = _absolute(module or "", level, package)
                if absolute is not None:
                    yield _from_import(absolute, aliases)
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
                if _is_import_call(function) and name and not name.startswith("."):
                    yield Import(name)
            case _:
                pass


def exported_names(tree: ast.Module) -> tuple[str, ...]:
    """Return the literal strings that the module assigns to its `__all__`: what a star import
    takes.
    """
    names: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                names += _strings(value)
            case ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value):
                names += _strings(value)
            case ast.AugAssign(target=ast.Name(id="__all__"), value=value):
                names += _strings(value)
            case _:
                pass
    return tuple(names)


def _from_import(module: str, aliases: list[ast.alias]) -> Import:
    names = tuple(alias.name for alias in aliases if alias.name != "*")
    return Import(module, names, star=len(names) < len(aliases))


def _absolute(module: str, level: int, package: str) -> str | None:
    """Return the absolute name of a `from` import; None if it climbs above the top package."""
    if level == 0:
        return module
    parts = package.split(".") if package else []
    if level > len(parts):
        return None
    base = parts[: len(parts) - level + 1]
    return ".".join([*base, module] if module else base)


def _is_import_call(function: ast.expr) -> bool:
    match function:
        case ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"):
            return True
        case _:
            return False


def _strings(value: ast.expr) -> list[str]:
    return [
        node.value
        for node in ast.walk(value)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
