"""The price of formulas that everybody knows: what it takes to say which of a few it is.

Sums, text-book curves and products are looked at beside a front, each with the nats that it takes to name it among its kind
(`search/front/plain_sums.py`). A member of the front may be one of these, with constants that the search has rounded, such as
`3*a*b`. It then takes no more to state, so it gets their price, and they are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gmeql.formula.nodes import Constant, Node, transform
from gmeql.formula.products import split_terms
from gmeql.model.pareto.member import FrontMember
from gmeql.model.pareto.rules import stating_nats


def term_shapes(root: Node) -> frozenset[Node]:
    """The terms of a formula without their factors, and without the values of constants inside.

    >>> from gmeql.formula.nodes import Variable, build
    >>> a, b = Variable(0), Variable(1)
    >>> term_shapes(build("mul", a, b)) == term_shapes(build("mul", Constant(2.9), a, b))
    True
    """
    parts = [Constant(0.0) if isinstance(part, Constant) else part for _, part in split_terms(root)]
    return frozenset(
        transform(part, lambda leaf: Constant(0.0) if isinstance(leaf, Constant) else leaf) for part in parts
    )


def repriced(
    members: Sequence[FrontMember], known: Sequence[FrontMember]
) -> tuple[tuple[FrontMember, ...], list[FrontMember]]:
    """The members of a front with the price of those `known` formulas that they are, and the others of these."""
    prices = {term_shapes(m.expression.root): m.outlook.nats for m in known if m.outlook is not None}
    shapes = [term_shapes(m.expression.root) for m in members]
    found = []
    for member, shape in zip(members, shapes, strict=True):
        nats = prices.get(shape)
        if nats is not None and member.outlook is not None and member.outlook.nats is None and not member.is_shrunk:
            own = stating_nats(member.expression.root, len(member.expression.names))
            member = replace(member, outlook=replace(member.outlook, nats=min(nats, own)))
        found.append(member)
    others = [
        m for m in known if m.outlook is None or m.outlook.nats is None or term_shapes(m.expression.root) not in shapes
    ]
    return tuple(found), others
