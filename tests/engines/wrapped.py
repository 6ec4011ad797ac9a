"""Kernels that call what is overloaded, so that the compiled bodies run and not those of Python."""

from stoic.engines.kernels import rows
from stoic.engines.kernels.jit import allocating_kernel, kernel
from stoic.engines.kernels.steps import robust_mscg as robust
from stoic.engines.kernels.vectors import any as forms, ball as in_ball, previous as earlier, thresholded


@kernel
def dot(X, row, u):
    return rows.dot(X, row, u)


@kernel
def dense_dot(x, u):
    return rows.dense_dot(x, u)


@kernel
def dense_push(x, factor, u):
    return rows.dense_push(x, factor, u)


@kernel
def products(X, row, Z, out):
    rows.products(X, row, Z, out)


@kernel
def squared_norm(X, row, work):
    return rows.squared_norm(X, row, work)


@kernel
def push(X, row, factor, u, following=-1):
    return rows.push(X, row, factor, u, following)


@kernel
def fetch(array, place):
    rows.fetch(array, place)


@kernel
def clear(X, row, u):
    rows.clear(X, row, u)


@allocating_kernel
def add_gram(X, bounds, drawn, slopes, heads, gram):
    robust.add_gram(X, bounds, drawn, slopes, heads, gram)


@kernel
def thresholded_product(X, w, row):
    return thresholded.thresholded_product(X, w, row)


@kernel
def add_thresholded(X, w, row, factor, following=-1):
    thresholded.add_thresholded(X, w, row, factor, following)


@kernel
def lines_below(w, sizes, out):
    line = thresholded.line_now(w)
    for k in range(sizes.size):
        out[k] = thresholded.last_below(w, sizes[k], line)


@kernel
def product(X, w, row):
    return forms.product(X, w, row)


@kernel
def add(X, w, row, factor, following=-1):
    forms.add(X, w, row, factor, following)


@kernel
def add_columns(w, columns, packed, q, factor):
    forms.add_columns(w, columns, packed, q, factor)


@kernel
def product_with_reference(X, w, Z, row, group, along):
    return forms.product_with_reference(X, w, Z, row, group, along)


@kernel
def intercept(w):
    return forms.intercept(w)


@kernel
def is_calm(w, amount):
    return forms.is_calm(w, amount)


@kernel
def needs_refresh(w, step, l1):
    return forms.needs_refresh(w, step, l1)


@kernel
def refresh(w):
    forms.refresh(w)


@kernel
def settle(w, step, l1, l2, tail_ahead, radius, has_tail):
    forms.settle(w, step, l1, l2, tail_ahead, radius, has_tail)


@kernel
def exceeds(w, far, growth, slack):
    return forms.exceeds(w, far, growth, slack)


@kernel
def note_move(w, length):
    forms.note_move(w, length)


@kernel
def earlier_product(X, row, now, last, q):
    return earlier.earlier_product(X, row, now, last, q)


@kernel
def predict_earlier(X, w, before, row):
    return earlier.predict_earlier(X, w, before, row)


@kernel
def mark(X, row, source, out, factor):
    earlier.mark(X, row, source, out, factor)


@kernel
def remember(X, w, before, drawn):
    earlier.remember(X, w, before, drawn)


@kernel
def carry_over(w, before):
    earlier.carry_over(w, before)


@kernel
def earlier_point(w, before, out):
    earlier.earlier_point(w, before, out)


@kernel
def squared_way(w, way):
    return in_ball.squared_way(w, way)


@kernel
def take(w, way):
    return in_ball.take(w, way)


@kernel
def squared_from_center(w):
    return thresholded.squared_from_center(w)
