"""Annotations are made of types, so that they can be evaluated on every Python and with every
numpy."""

import ast
import importlib
import importlib.util
import typing
from collections.abc import Iterator
from pathlib import Path

import bruit

ROOT = Path(bruit.__file__).parent
MODULES = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if path.name != "__main__.py"
    and "_pb2" not in path.name
    and (importlib.util.find_spec("torch") is not None or "with_torch" not in path.parts)
]


def annotations(tree: ast.Module) -> Iterator[ast.expr]:
    """Everything that stands behind a colon or an arrow."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns


def strings_in_unions(expression: ast.expr, names: dict[str, object]) -> list[str]:
    """Sides of `|` that are strings at run time: `X | "Y"`, or `X | Y` where Y was assigned a string."""
    found = []
    for node in ast.walk(expression):
        for side in (
            (node.left, node.right)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
            else ()
        ):
            if isinstance(side, ast.Constant) and isinstance(side.value, str):
                found.append(side.value)
            elif isinstance(side, ast.Name) and isinstance(names.get(side.id), str):
                found.append(side.id)
    return found


def name_of(path: Path) -> str:
    return ".".join(("bruit", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    )


def test_no_union_has_a_string_in_it() -> None:
    """`ArrayLike | "Weights"` is a TypeError since numpy 2.5, whose ArrayLike is a `type`
    statement's alias."""
    found = []
    for path in MODULES:
        names = vars(importlib.import_module(name_of(path)))
        for annotation in annotations(ast.parse(path.read_text())):
            found += [
                f"{path.name}:{annotation.lineno}: {text}"
                for text in strings_in_unions(annotation, names)
            ]
    assert found == []


def test_the_check_finds_both_kinds() -> None:
    tree = ast.parse('def f(x: int | "Y", y: int | Named, z: list[int | Fine]) -> "Y": ...')
    found = [strings_in_unions(part, {"Named": "Y", "Fine": int}) for part in annotations(tree)]
    assert sorted(text for texts in found for text in texts) == ["Named", "Y"]


def test_hints_of_the_graph_functions_can_be_read() -> None:
    from bruit.graphs.mixing import from_matrix
    from bruit.graphs.similarity import similarity

    assert "weights" in typing.get_type_hints(similarity)
    assert "matrix" in typing.get_type_hints(from_matrix)
