"""What is known, where groups have constants of their own: it must hold in the formula of every group.

A formula with own constants has columns behind those of the table. With the numbers of one group in their place it is a
formula over the table, of which the user's knowledge speaks.

Legend: `V` columns of the table, `G` groups, `K` own constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gmeql.formula.nodes import Constant, Leaf, Node, Variable, leaves, transform
from gmeql.knowledge.constraints import Constraint
from gmeql.knowledge.knowledge import Knowledge
from gmeql.knowledge.scene import Verdict


@dataclass(frozen=True, eq=False)
class GroupsKnowledge(Knowledge):
    """What is known of one target, asked of the formulas of all groups."""

    n_variables: int = 0
    """V; columns from there on are own constants."""
    own: NDArray[np.float64] | None = None
    """Their values in each group [G, K]."""

    @classmethod
    def of(cls, known: Knowledge, n_variables: int, own: NDArray[np.float64]) -> GroupsKnowledge:
        """The same knowledge, asked so."""
        given: dict[str, Any] = {field.name: getattr(known, field.name) for field in fields(Knowledge)}
        return cls(**given, n_variables=n_variables, own=own)

    def in_group(self, root: Node, group: int) -> Node:
        """The formula of one group, over the table's columns alone."""
        assert self.own is not None
        values = self.own[group]

        def leaf(node: Leaf) -> Node:
            if isinstance(node, Variable) and node.index >= self.n_variables:
                return Constant(float(values[node.index - self.n_variables]))
            return node

        return transform(root, leaf)

    def in_groups(self, root: Node) -> Iterator[Node]:
        """The formula of every group; one where it has no own constants."""
        assert self.own is not None
        has_own = any(isinstance(leaf, Variable) and leaf.index >= self.n_variables for leaf in leaves(root))
        for group in range(len(self.own) if has_own else 1):
            yield self.in_group(root, group)

    def shared_places(self, root: Node) -> list[int]:
        """Numbers of a formula's shared constants among all constants of the formula of one group."""
        constants = [
            leaf
            for leaf in leaves(root)
            if isinstance(leaf, Constant) or (isinstance(leaf, Variable) and leaf.index >= self.n_variables)
        ]
        return [place for place, leaf in enumerate(constants) if isinstance(leaf, Constant)]

    def admits(self, root: Node) -> bool:
        """Whether the formula of every group may be tried."""
        return all(super(GroupsKnowledge, self).admits(formula) for formula in self.in_groups(root))

    def keeps(self, root: Node) -> bool:
        """Whether the formula of every group may stand on the front."""
        return all(super(GroupsKnowledge, self).keeps(formula) for formula in self.in_groups(root))

    def keeps_units(self, root: Node) -> bool:
        """Whether the formula of every group keeps the units."""
        return all(super(GroupsKnowledge, self).keeps_units(formula) for formula in self.in_groups(root))

    def price(self, root: Node) -> float:
        """The price of the group that breaks most soft rules."""
        return max(super(GroupsKnowledge, self).price(formula) for formula in self.in_groups(root))

    def held_constants(self, root: Node) -> frozenset[int]:
        """Numbers of the shared constants that a fit must leave as they are."""
        held = super().held_constants(self.in_group(root, 0))
        return frozenset(number for number, place in enumerate(self.shared_places(root)) if place in held)

    def verdicts(self, root: Node) -> list[tuple[Constraint, Verdict]]:
        """What becomes of each constraint: kept where all groups keep it, proven where it is proven in all."""
        found = [super(GroupsKnowledge, self).verdicts(formula) for formula in self.in_groups(root)]
        return [
            (rules[0][0], Verdict(all(v.holds for _, v in rules), all(v.proven for _, v in rules)))
            for rules in zip(*found, strict=True)
        ]

    def units_of_constants(self, root: Node) -> list[Any]:
        """Units of the shared constants, as `Expression.constants` has them."""
        units = super().units_of_constants(self.in_group(root, 0))
        return [units[place] for place in self.shared_places(root)] if units else []

    def units_of_own(self, root: Node) -> dict[int, Any]:
        """Units of own constants by their columns."""
        units = super().units_of_constants(self.in_group(root, 0))
        places = set(self.shared_places(root))
        own = [leaf for leaf in leaves(root) if isinstance(leaf, Variable) and leaf.index >= self.n_variables]
        of_own = [unit for place, unit in enumerate(units) if place not in places]
        return {leaf.index: unit for leaf, unit in zip(own, of_own, strict=False)}
