"""The code behind a stage, as hashes: what must run again when a function changes, and what need not.

A stage names the modules it calls. Their first-party imports are followed through the syntax tree, nothing is
imported, and each module is hashed without comments, docstrings and layout. So a comment costs nothing, and a
changed line invalidates exactly the stages that can reach it.
"""

import ast
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

FIRST_PARTY = ("rag", "data_checks", "reports")
_ROOT = Path(__file__).resolve().parents[1]  # the folder that holds the packages, installed or not


def code_fingerprint(modules: Sequence[str], root: Path = _ROOT) -> dict[str, str]:
    """The sha256 of every first-party module that ``modules`` can reach, by name in alphabetical order.

    Imports inside functions and under ``if TYPE_CHECKING`` count too. Importing ``rag.corpus.dump`` also runs
    ``rag/__init__.py`` and ``rag/corpus/__init__.py``: those count by what they do besides exporting, so that an
    export of a neighbour changes nothing here. Files of a package that are not Python are the caller's business.

    Raises ModuleNotFoundError where a first-party module has no file.

    >>> sorted(code_fingerprint(["rag.task_config"]))
    ['rag.records', 'rag.source_config', 'rag.task_config']
    """
    reached: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        module = _read(root, name)
        reached[name] = module.digest
        waiting.extend(module.imports)
    ancestors = {parent for name in reached for parent in _parents(name)} - reached.keys()
    own_work = {name: _read(root, name).digest_without_exports for name in ancestors}
    return dict(sorted({**reached, **{name: digest for name, digest in own_work.items() if digest}}.items()))


class _Module(NamedTuple):
    digest: str
    digest_without_exports: str  # of a package's __init__.py; empty where it only exports
    imports: tuple[str, ...]


@cache  # a process runs the code it has loaded; a file that changes under it does not change that
def _read(root: Path, name: str) -> _Module:
    path = _find(root, name)
    if path is None:
        raise ModuleNotFoundError(f"no file for the module {name} under {root}; a stage or an import names it")
    tree = ast.parse(path.read_bytes(), filename=str(path))
    imports = tuple(dict.fromkeys(_imports(tree, root, name, is_package=path.name == "__init__.py")))
    _drop_docstrings(tree)
    is_package = path.name == "__init__.py"
    rest = ast.Module([node for node in tree.body if is_package and not _is_export(node)], [])
    return _Module(_digest(tree), _digest(rest) if rest.body else "", imports)


def _digest(tree: ast.Module) -> str:
    # unparse and not dump: its text is nearly the same in every Python version, so an upgrade keeps the cache
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()


def _find(root: Path, name: str) -> Path | None:
    base = root.joinpath(*name.split("."))
    candidates = (base.with_name(f"{base.name}.py"), base / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _imports(tree: ast.Module, root: Path, name: str, *, is_package: bool) -> Iterator[str]:
    """The first-party modules that the import statements of a module name, wherever they stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_first_party(alias.name))
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, name, is_package=is_package)
            if _is_first_party(base):
                for alias in node.names:  # a submodule, or a name that the module itself defines or exports
                    submodule = f"{base}.{alias.name}"
                    yield submodule if _find(root, submodule) else base


def _absolute(node: ast.ImportFrom, name: str, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = name.split(".")
    kept = parts[: len(parts) - node.level + is_package]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _is_first_party(name: str) -> bool:
    return name.split(".", 1)[0] in FIRST_PARTY


def _drop_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                    node.body = rest or [ast.Pass()]


def _is_export(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Pass):
        return True
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]
