"""Every small error that can be put into a source file: one changed operator, number, name or statement each."""

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*", ast.FloorDiv: "*"}
SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.FloorDiv: "//"}
COMPARISONS = {
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
OPPOSITES = {"min": "max", "minimum": "maximum", "argmin": "argmax", "ceil": "floor", "any": "all"}
OPPOSITES |= {there: here for here, there in OPPOSITES.items()}
DROPPED = {"abs", "sqrt", "log", "exp", "ceil", "floor", "sort"}
SIBLINGS = {
    "average": "w",
    "previous": "w",
    "w": "average",
    "C_g": "L_g",
    "L_g": "C_g",
    "C_f": "C_g",
    "L_f": "L_g",
    "sigma0": "sigma1",
    "sigma1": "sigma0",
    "radius_y": "radius_z",
    "radius_z": "radius_y",
    "slack_y": "slack_z",
    "slack_z": "slack_y",
}
TINY, HUGE = 1e-5, 1e300


class Mutant(NamedTuple):
    """A module with one error in it: where it is, the line as it was and as it is now, and the whole source."""

    module: str
    function: str
    before: str
    after: str
    source: str

    @property
    def place(self) -> tuple[str, str, str]:
        """What names a mutant whatever its line number."""
        return self.module, self.function, self.after


class _Change(NamedTuple):
    """Bytes from `start` to `end` of a source that give way to `text`."""

    start: int
    end: int
    text: str


def mutants_of(module: str, source: str) -> Iterator[Mutant]:
    """Yield the mutants of a module, in the order in which they stand in its source."""
    text, places = _Text(source), set()
    for function, node, known in _nodes(text.tree, "", frozenset()):
        for change in _changes(text, node, known):
            mutant = text.mutant(module, function, change)
            if mutant.source != source and mutant.place not in places:  # of equal lines the first is enough
                places.add(mutant.place)
                yield mutant


def mutant_by_hand(module: str, source: str, before: str, after: str) -> Mutant:
    """Return the module with one passage, which must stand there once, in the place of another."""
    if source.count(before) != 1:
        raise ValueError(f"{before!r} stands {source.count(before)} times in {module}, not once")
    start = len(source[: source.index(before)].encode())
    text = _Text(source)
    return text.mutant(module, text.function_at(start), _Change(start, start + len(before.encode()), after))


class _Text:
    """A source as bytes, in which nodes of its tree have their places."""

    def __init__(self, source: str) -> None:
        self.bytes = source.encode()
        self.tree = ast.parse(source)
        self.starts = [0, *(match.end() for match in re.finditer(rb"\n", self.bytes))]  # of lines

    def span(self, node: ast.AST) -> tuple[int, int]:
        start = self.starts[node.lineno - 1] + node.col_offset
        return start, self.starts[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.bytes[start:end].decode()

    def replaced(self, node: ast.AST, text: str) -> _Change:
        return _Change(*self.span(node), text)

    def between(self, left: ast.AST, right: ast.AST, old: str, new: str) -> _Change:
        """Return the change of the operator that stands between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.bytes[start:end].decode()
        return _Change(start, end, re.sub(re.escape(old), new, gap, count=1))

    def mutant(self, module: str, function: str, change: _Change) -> Mutant:
        text = change.text.encode()
        source = self.bytes[: change.start] + text + self.bytes[change.end :]
        row = bisect_right(self.starts, change.start) - 1 + text.startswith(b"\n")  # where the change is seen
        after = source[self.starts[row] :].split(b"\n", 1)[0]
        before = self.bytes[self.starts[row] : self.starts[row + 1]]
        return Mutant(module, function, before.decode().strip(), after.decode().strip(), source.decode())

    def function_at(self, position: int) -> str:
        """Return the qualified name of the function around a byte."""
        name, nodes = "", [self.tree]
        for node in nodes:  # grows by what lies in the function found
            for child in ast.iter_child_nodes(node):
                if not hasattr(child, "lineno"):
                    continue
                start, end = self.span(child)
                if start <= position < end:
                    nodes.append(child)
                    name += f".{child.name}" if isinstance(child, ast.FunctionDef | ast.ClassDef) else ""
        return name.removeprefix(".")


def _nodes(node: ast.AST, name: str, known: frozenset[str]) -> Iterator[tuple[str, ast.AST, frozenset[str]]]:
    """Yield the nodes that may be changed, with the function around them and the names that have a value there."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        name = f"{name}.{node.name}".removeprefix(".")
    if isinstance(node, ast.FunctionDef):
        known |= {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
    for child in _children(node):
        yield name, child, known
        yield from _nodes(child, name, known)
        if isinstance(child, ast.Assign):
            known |= {one.id for target in child.targets for one in ast.walk(target) if isinstance(one, ast.Name)}


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is run of a node: no annotations, decorators, docstrings, messages of errors."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.FunctionDef):
        yield from (one for one in (*node.args.defaults, *node.args.kw_defaults) if one is not None)
        yield from node.body[_has_docstring(node) :]
    elif isinstance(node, ast.ClassDef | ast.Module):
        yield from node.body
    elif isinstance(node, ast.AnnAssign):
        yield from [node.value] if node.value is not None else []
    else:
        yield from ast.iter_child_nodes(node)


def _has_docstring(node: ast.FunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None


def _changes(text: _Text, node: ast.AST, known: frozenset[str]) -> Iterator[_Change]:
    for kind, changes in _KINDS.items():
        if isinstance(node, kind):
            yield from changes(text, node)
    if _can_go(node, known):
        yield text.replaced(node, f"pass  # {text.of(node).splitlines()[0]}")


def _can_go(node: ast.AST, known: frozenset[str]) -> bool:
    """Whether the code without a statement could still run."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Name) and target.id in known for target in node.targets)
    if isinstance(node, ast.If):
        return not node.orelse and len(node.body) == 1
    return isinstance(node, ast.AugAssign | ast.Break) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    )


def _numbers(text: _Text, node: ast.Constant) -> Iterator[_Change]:
    number = node.value
    if isinstance(number, bool):
        yield text.replaced(node, str(not number))
    elif isinstance(number, int):
        yield text.replaced(node, str(number + 1))
    elif isinstance(number, float) and abs(number) < HUGE:
        yield text.replaced(node, repr(float(f"{number * (1000.0 if number < TINY else 2.0) or 1.0:.12g}")))


def _arithmetic(text: _Text, node: ast.BinOp) -> Iterator[_Change]:
    kind = type(node.op)
    if kind in OPERATORS:
        yield text.between(node.left, node.right, SYMBOLS[kind], OPERATORS[kind])


def _comparisons(text: _Text, node: ast.Compare) -> Iterator[_Change]:
    operands = [node.left, *node.comparators]
    for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
        old, others = COMPARISONS[type(operator)]
        for new in others:
            yield text.between(left, right, old, new)


def _logic(text: _Text, node: ast.BoolOp) -> Iterator[_Change]:
    old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    yield text.between(node.values[0], node.values[1], old, new)


def _conditions(text: _Text, node: ast.If | ast.IfExp) -> Iterator[_Change]:
    yield text.replaced(node.test, f"not ({text.of(node.test)})")


def _signs(text: _Text, node: ast.UnaryOp) -> Iterator[_Change]:
    if isinstance(node.op, ast.USub | ast.Not):
        yield text.replaced(node, text.of(node.operand))


def _calls(text: _Text, node: ast.Call) -> Iterator[_Change]:
    name = text.of(node.func).rpartition(".")
    if name[2] in OPPOSITES:
        yield text.replaced(node.func, "".join((*name[:2], OPPOSITES[name[2]])))
    if name[2] in DROPPED and len(node.args) == 1:
        yield text.replaced(node, f"({text.of(node.args[0])})")


def _returned(text: _Text, node: ast.Return) -> Iterator[_Change]:
    if isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
        left, right = node.value.elts[:2]
        (start, middle), (after, end) = text.span(left), text.span(right)
        yield _Change(start, end, text.of(right) + text.bytes[middle:after].decode() + text.of(left))


def _fields(text: _Text, node: ast.Attribute) -> Iterator[_Change]:
    if node.attr in SIBLINGS and isinstance(node.ctx, ast.Load):
        yield text.replaced(node, f"{text.of(node.value)}.{SIBLINGS[node.attr]}")


_KINDS = {
    ast.Constant: _numbers,
    ast.BinOp: _arithmetic,
    ast.Compare: _comparisons,
    ast.BoolOp: _logic,
    (ast.If, ast.IfExp): _conditions,
    ast.UnaryOp: _signs,
    ast.Call: _calls,
    ast.Return: _returned,
    ast.Attribute: _fields,
}
