"""Numbers that look the same on every machine: none so near a rounding edge that another machine may cross it."""

import ast
import re
from types import CodeType

import numpy as np
from numpy.typing import ArrayLike

MARGIN = 1e-6  # of a number's size, at least 1; `benchmarks/portability.py` measures what machines differ by


def clear(x: ArrayLike, digits: int = 0) -> ArrayLike:
    """Return x after a check that numbers within `MARGIN` of it look the same, rounded to a number of digits."""
    values = np.asarray(x, dtype=float)
    slack = MARGIN * np.maximum(1.0, np.abs(values))
    below, above = (np.round(values + side * slack, digits) for side in (-1, 1))
    unclear = (below != above) | ((-slack < values) & (values < 0.0))  # -0. here may be 0. there
    assert not unclear.any(), f"{values[unclear]} are too near to a rounding edge to show {digits} digits of them"
    return x


class _Checked(ast.NodeTransformer):
    """Put `clear` around what is rounded: by x.round(n), round(x, n), or in f"{x:.nf}"."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "round":
            node.func.value = _clear(node.func.value, *node.args)
        elif isinstance(node.func, ast.Name) and node.func.id == "round":
            node.args[0] = _clear(*node.args)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        self.generic_visit(node)
        if node.format_spec and (found := re.search(r"\.(\d+)f'$", ast.unparse(node.format_spec))):
            node.value = _clear(node.value, ast.Constant(int(found[1])))
        return node


def _clear(value: ast.expr, *digits: ast.expr) -> ast.Call:
    return ast.Call(ast.Name("clear", ast.Load()), [value, *digits], [])


def compiled(code: str, name: str) -> CodeType:
    """Return the code of a sample that calls `clear`, a name it must be given, before it rounds."""
    return compile(ast.fix_missing_locations(_Checked().visit(ast.parse(code))), name, "exec")
