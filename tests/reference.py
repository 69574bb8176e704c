"""Slow, obvious NumPy versions of the network and of Algorithm 1: loops, no tricks, derivatives by complex step.

They share nothing with the package but the architecture's wiring and, for whole runs, the random numbers.
"""

from __future__ import annotations

import math

import numpy as np

COMPLEX_STEP = 1e-40


def magnitude(x):
    return np.where(x.real < 0, -x, x)


def clip(x, low, high):
    return np.where(x.real < low, low + 0j, np.where(x.real > high, high + 0j, x))


def quotient(a, b):
    zero = np.abs(b.real) <= 1e-12
    safe = np.where(zero, 1.0, b)
    large = np.abs(a.real) > 100.0 * np.abs(safe.real)
    value = np.where(large, 100.0 * np.sign(a.real) * np.sign(safe.real), a / safe)
    return np.where(zero, 0.0, value)


def power(x, exponent):
    """|x| ** exponent with the protected power's bounds."""
    base = clip(magnitude(x), 1e-6, 1e6)
    return np.exp(np.log(base) * clip(np.asarray(exponent) + 0j, -5.0, 5.0))


FUNCTIONS = {
    "id": lambda x: x,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": quotient,
    "sin": np.sin,
    "cos": np.cos,
    "sqrt": lambda x: np.sqrt(clip(magnitude(x), 1e-12, math.inf)),
    "square": lambda x: x * x,
    "cube": lambda x: x * x * x,
    "pow4": lambda x: x * x * x * x,
    "exp": lambda x: np.exp(clip(x, -80.0, 80.0)),
    "tanh": np.tanh,
}


def forward(architecture, selections, weights, X):
    """Outputs [n_outputs, N] of one network, node by node, input by input, choice by choice."""
    selections, weights = np.asarray(selections) + 0j, np.asarray(weights) + 0j
    values = [X[:, column] + 0j for column in range(architecture.n_variables)]
    values += [np.full(len(X), constant) + 0j for constant in architecture.constants]
    for node in range(architecture.n_inputs, architecture.n_nodes):
        name = architecture.node_operator[node]
        if name in ("sum", "prod"):
            total = np.zeros(len(X)) + 0j if name == "sum" else np.ones(len(X)) + 0j
            for source, weight in zip(*architecture.dense_of(node), strict=True):
                if name == "sum":
                    total = total + weights[weight] * values[source]
                else:
                    total = total * power(values[source], weights[weight])
            values.append(total)
            continue
        arguments = []
        for connection in architecture.connections_of(node):
            mixed = np.zeros(len(X)) + 0j
            for choice in range(architecture.n_choices[connection]):
                source = architecture.source_low[connection] + choice
                mixed = mixed + selections[connection, choice] * values[source]
            arguments.append(weights[connection] * mixed)
        values.append(FUNCTIONS[name](*arguments))
    return np.stack(values[-architecture.n_outputs :])


def loss(architecture, selections, weights, X, y):
    """Mean absolute error, still complex so that it can be differentiated; y is [N, n_outputs]."""
    return np.mean(magnitude(y.T - forward(architecture, selections, weights, X)))


def gradients(architecture, selections, weights, X, y):
    """Derivatives of the loss with respect to every selection and every weight, one complex step each."""
    by_selection = np.zeros(np.shape(selections))
    for connection in range(architecture.n_connections):
        for choice in range(architecture.n_choices[connection]):
            moved = np.array(selections) + 0j
            moved[connection, choice] += 1j * COMPLEX_STEP
            by_selection[connection, choice] = loss(architecture, moved, weights, X, y).imag / COMPLEX_STEP
    by_weight = np.zeros(np.shape(weights))
    for number in range(len(weights)):
        moved = np.array(weights) + 0j
        moved[number] += 1j * COMPLEX_STEP
        by_weight[number] = loss(architecture, selections, moved, X, y).imag / COMPLEX_STEP
    return by_selection, by_weight


def hard(architecture, selections):
    """One-hot selections: the largest real choice of each connection."""
    result = np.zeros(np.shape(selections))
    for connection in range(architecture.n_connections):
        result[connection, np.argmax(selections[connection, : architecture.n_choices[connection]])] = 1.0
    return result


def expression(architecture, selections):
    """The formula's text, from the outputs down, weights ignored, commuting inputs sorted, identities skipped."""
    chosen = np.argmax(hard(architecture, selections), axis=1)

    def spell(node):
        name = architecture.node_operator[node]
        if node < architecture.n_inputs:
            return f"input{node}"
        if name in ("sum", "prod"):
            inputs = [spell(source) for source in architecture.dense_of(node)[0]]
        else:
            inputs = [spell(architecture.source_low[c] + chosen[c]) for c in architecture.connections_of(node)]
        if name == "id":
            return inputs[0]
        if name in ("add", "mul", "sum", "prod"):
            inputs = sorted(inputs)
        return f"{name}({','.join(inputs)})"

    return tuple(spell(node) for node in range(architecture.layer_slices[-1].start, architecture.n_nodes))


def softmax(scores):
    exponentials = np.exp(scores - np.max(scores))
    return exponentials / exponentials.sum()


class Adam:
    """Kingma and Ba's algorithm 1, one array."""

    def __init__(self, shape, rate):
        self.rate, self.mean, self.square = rate, np.zeros(shape), np.zeros(shape)

    def step(self, gradient, age, rows=None):
        """What to subtract; with `rows` only those rows move and remember."""
        rows = np.ones(len(gradient), bool) if rows is None else rows
        self.mean[rows] = 0.9 * self.mean[rows] + 0.1 * gradient[rows]
        self.square[rows] = 0.999 * self.square[rows] + 0.001 * gradient[rows] ** 2
        mean, square = self.mean / (1 - 0.9 ** (age + 1)), self.square / (1 - 0.999 ** (age + 1))
        update = self.rate * mean / (np.sqrt(square) + 1e-8)
        update[~rows] = 0.0
        return update


class Elites:
    """A list of dictionaries, sorted by loss; of equal expressions the lowest loss stays."""

    def __init__(self, capacity):
        self.capacity, self.members = capacity, []

    def store(self, candidates):
        for candidate in candidates:
            if not np.isfinite(candidate["loss"]):
                continue
            twins = [member for member in self.members if member["expression"] == candidate["expression"]]
            if twins and twins[0]["loss"] <= candidate["loss"]:
                continue
            self.members = [member for member in self.members if member["expression"] != candidate["expression"]]
            self.members.append(candidate)
        self.members = sorted(self.members, key=lambda member: member["loss"])[: self.capacity]

    def draw(self, uniform, exponent):
        weights = [rank**-exponent for rank in range(1, len(self.members) + 1)]
        target, total = uniform * sum(weights), 0.0
        for member, weight in zip(self.members, weights, strict=True):
            total += weight
            if target < total:
                return member
        return self.members[-1]


def density_gradient(architecture, logits, selections, temperature):
    """Equation 7, term by term."""
    result = np.zeros_like(logits)
    for c in range(architecture.n_connections):
        count = architecture.n_choices[c]
        pull = [math.exp(logits[c, a]) * selections[c, a] ** -temperature for a in range(count)]
        for choice in range(count):
            others = sum(pull[a] for a in range(count) if a != choice)
            result[c, choice] = others / sum(pull) - (count - 1) * pull[choice] / sum(pull)
    return result


def squared_difference_gradient(architecture, logits, selections, temperature):
    """Derivative of appendix B's J' for one instance."""
    result = np.zeros_like(logits)
    for c in range(architecture.n_connections):
        for a in range(architecture.n_choices[c]):
            grown = math.exp(logits[c, a])
            result[c, a] = 2 * (grown - selections[c, a] ** temperature) * grown
    return result


def two_stage(architecture, X, y, config, initial, noise):
    """Algorithm 1. `initial(step)` gives fresh (logits, weights), `noise(step)` a step's random numbers."""
    elites = Elites(config.capacity)
    best = {"loss": math.inf}
    means = []
    step = 0
    segments = config.segments
    for number, steps in enumerate(segments):
        stage2 = number == len(segments) - 1
        logits, weights = (np.array(values) for values in initial(step))
        online_logits = Adam(logits.shape, config.logits_rate)
        online_weights = Adam(weights.shape, config.weights_rate)
        offline_logits = Adam(logits.shape, config.offline_rate)
        for age in range(steps):
            random = noise(step)
            instances = []
            drawn = []
            for p in range(config.samples_per_step):
                inherits = config.use_elites and elites.members
                if config.fill_first and len(elites.members) < config.capacity:
                    inherits = False
                labels = np.ones(architecture.n_connections, bool)
                selections = np.zeros(logits.shape)
                if inherits:
                    parent = elites.draw(random.elite[p], config.power_law_exponent)
                    drawn.append(parent)
                    selections = parent["selections"].copy()
                    count = max(1, round(config.resample_fraction * architecture.n_connections))
                    labels = np.zeros(architecture.n_connections, bool)
                    labels[np.argsort(random.label[p])[:count]] = True
                for c in np.flatnonzero(labels):
                    n = architecture.n_choices[c]
                    selections[c] = 0.0
                    selections[c, :n] = softmax((logits[c, :n] + random.gumbel[p, c, :n]) / config.temperature)
                value = float(loss(architecture, selections, weights, X, y).real)
                instances.append({"selections": selections, "labels": labels, "loss": value, "weights": weights.copy(),
                                  "expression": expression(architecture, selections), "step": step})  # fmt: skip
            if config.refresh_elites:
                for member in drawn:
                    member["loss"] = float(loss(architecture, member["selections"], weights, X, y).real)
            elites.store([dict(instance) for instance in instances])
            best = min([best, *instances], key=lambda instance: instance["loss"])
            means.append(np.mean([instance["loss"] for instance in instances]))

            logit_gradient, weight_gradient = np.zeros(logits.shape), np.zeros(weights.shape)
            for instance in instances:
                selections = instance["selections"]
                by_selection, by_weight = gradients(architecture, selections, weights, X, y)
                weight_gradient += by_weight / config.samples_per_step
                for c in np.flatnonzero(instance["labels"]):
                    v = selections[c]
                    jacobian = (np.diag(v) - np.outer(v, v)) / config.temperature
                    logit_gradient[c] += jacobian @ by_selection[c] / config.samples_per_step
            limit = config.gradient_clip
            moved = np.any([instance["labels"] for instance in instances], axis=0)
            logits = logits - online_logits.step(np.clip(logit_gradient, -limit, limit), age, moved)
            if stage2:
                weights = weights - online_weights.step(np.clip(weight_gradient, -limit, limit), age)
                if config.use_offline:
                    rule = density_gradient if config.offline_rule == "density" else squared_difference_gradient
                    sign = -1.0 if config.offline_rule == "density" else 1.0
                    total = np.zeros(logits.shape)
                    for uniform in random.offline:
                        member = elites.draw(uniform, config.power_law_exponent)
                        total += sign * rule(architecture, logits, member["selections"], config.temperature)
                    total /= config.offline_batch
                    logits = logits - offline_logits.step(np.clip(total, -limit, limit), age)
            step += 1
    return {"logits": logits, "weights": weights, "elites": elites.members, "best": best, "means": np.array(means)}
