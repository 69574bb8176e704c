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

    def __init__(self, shape, rate, epsilon_hat=False):
        self.rate, self.mean, self.square = rate, np.zeros(shape), np.zeros(shape)
        self.epsilon_hat = epsilon_hat

    def step(self, gradient, age, rows=None):
        """What to subtract; with `rows` only those rows move and remember."""
        rows = np.ones(len(gradient), bool) if rows is None else rows
        self.mean[rows] = 0.9 * self.mean[rows] + 0.1 * gradient[rows]
        self.square[rows] = 0.999 * self.square[rows] + 0.001 * gradient[rows] ** 2
        mean, square = self.mean / (1 - 0.9 ** (age + 1)), self.square / (1 - 0.999 ** (age + 1))
        update = self.rate * mean / (np.sqrt(square) + 1e-8)
        if self.epsilon_hat:  # section 2 of Kingma and Ba, the form of TensorFlow
            rate = self.rate * math.sqrt(1 - 0.999 ** (age + 1)) / (1 - 0.9 ** (age + 1))
            update = rate * self.mean / (np.sqrt(self.square) + 1e-8)
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

    def draw(self, uniform, config):
        """The uniform counts along the members, from the worst up where the released code's law is asked for."""
        count, power = len(self.members), config.power_law_exponent
        weights = [rank**-power for rank in range(1, count + 1)]
        members = self.members
        if config.draw_law == "released":
            weights = [(count - rank) ** power for rank in range(count)][::-1]
            members = members[::-1]
        target, total = uniform * sum(weights), 0.0
        for member, weight in zip(members, weights, strict=True):
            total += weight
            if target < total:
                return member
        return members[-1]


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


def selections_under(architecture, logits, instance, gumbel, temperature):
    """An instance with its labelled connections sampled by these logits and this noise."""
    selections = instance["parent"].copy()
    for c in np.flatnonzero(instance["labels"]):
        n = architecture.n_choices[c]
        selections[c] = 0.0
        selections[c, :n] = softmax((logits[c, :n] + gumbel[c, :n]) / temperature)
    return selections


def sampled(architecture, config, elites, random):
    """Which connections of each new instance are sampled, and what it inherits for the others."""
    instances = []
    for p in range(config.samples_per_step):
        full = len(elites.members) == config.capacity
        instance = {"labels": np.ones(architecture.n_connections, bool), "drawn": None}
        instance["parent"] = np.zeros((architecture.n_connections, architecture.max_choices))
        if config.use_elites and elites.members and (full or not config.fill_first):
            instance["drawn"] = elites.draw(random.elite[p], config)
            instance["parent"] = instance["drawn"]["selections"]
            if config.resample_law == "bernoulli":
                instance["labels"] = random.label[p] < config.resample_fraction
            else:
                count = max(1, round(config.resample_fraction * architecture.n_connections))
                instance["labels"] = np.zeros(architecture.n_connections, bool)
                instance["labels"][np.argsort(random.label[p])[:count]] = True
        instances.append(instance)
    return instances


def evaluated(architecture, config, instances, logits, weights, X, y, random, temperature, step):
    """The instances under these logits and weights, with what is stored of them."""
    found = []
    for p, instance in enumerate(instances):
        selections = selections_under(architecture, logits, instance, random.gumbel[p], temperature)
        own = instance["drawn"]["kept_weights"] if config.elite_weights and instance["drawn"] else weights
        value = float(loss(architecture, selections, own, X, y).real)
        found.append({**instance, "selections": selections, "weights": own.copy(), "step": step, "loss": value,
                      "expression": expression(architecture, selections)})  # fmt: skip
    return found


def average_gradients(architecture, config, instances, weights, X, y, temperature):
    """Average gradients of the loss by logits and by weights; by logits for labelled connections alone."""
    count = len(instances)
    by_logits, by_weights = 0.0, 0.0
    for instance in instances:
        at = instance["weights"] if config.elite_weights else weights
        by_selection, by_weight = gradients(architecture, instance["selections"], at, X, y)
        by_weights = by_weights + by_weight / count
        share = np.zeros(by_selection.shape)
        for c in np.flatnonzero(instance["labels"]):
            v = instance["selections"][c]
            share[c] = (np.diag(v) - np.outer(v, v)) / temperature @ by_selection[c] / count
        by_logits = by_logits + share
    limit = config.gradient_clip
    return np.clip(by_logits, -limit, limit), np.clip(by_weights, -limit, limit)


def kept_weights(architecture, config, instance, online_weights, X, y, age):
    """The weights that an elite is kept with: its own, one step further down their own gradient."""
    _, by_weight = gradients(architecture, instance["selections"], instance["weights"], X, y)
    spread = np.sqrt(online_weights.square / (1 - 0.999 ** (age + 1))) + 1e-8
    limit = config.gradient_clip
    return instance["weights"] - online_weights.rate * np.clip(by_weight, -limit, limit) / spread


def retempered(selections, then, now):
    """The same noise at another temperature: V to the power then / now, normalised."""
    powers = selections ** (then / now)
    return powers / powers.sum(axis=1, keepdims=True)


def two_stage(architecture, every_X, every_y, config, initial, noise):
    """Algorithm 1. `initial(step)` gives fresh (logits, weights), `noise(step)` a step's random numbers."""
    elites, kept = Elites(config.capacity), Elites(config.capacity)
    best = {"loss": math.inf}
    means = []
    step = 0
    for number, steps in enumerate(config.segments):
        stage2 = number == len(config.segments) - 1
        if config.merge_rounds:
            kept.store(elites.members)
            elites = Elites(config.capacity)
            if stage2:
                elites.store(kept.members)
        logits, weights = (np.array(values) for values in initial(step))
        online_logits = Adam(logits.shape, config.logits_rate, config.epsilon_hat)
        online_weights = Adam(weights.shape, config.weights_rate, config.epsilon_hat)
        offline_logits = Adam(logits.shape, config.offline_rate, config.epsilon_hat)
        for age in range(steps):
            random = noise(step)
            rows = [
                (step * (config.batch_rows or 0) + i) % len(every_X) for i in range(config.batch_rows or len(every_X))
            ]
            X, y = every_X[rows], every_y[rows]
            temperature = config.temperature
            share = age / max(steps - 1, 1)
            if stage2 and config.final_temperature is not None:
                temperature *= (config.final_temperature / config.temperature) ** share
            if stage2 and config.final_weights_rate is not None:
                fall = (config.final_weights_rate / config.weights_rate) ** share
                online_weights.rate = config.weights_rate * fall
            if config.anneal_elites:
                for member in elites.members:
                    member["selections"] = retempered(
                        member["selections"], member.get("temperature", temperature), temperature
                    )
                    member["temperature"] = temperature
            instances = sampled(architecture, config, elites, random)
            before = weights

            stored = evaluated(architecture, config, instances, logits, weights, X, y, random, temperature, step)
            by_logits, by_weights = average_gradients(architecture, config, stored, weights, X, y, temperature)
            if stage2:
                weights = weights - online_weights.step(by_weights, age)
            for instance in stored if config.elite_weights else ():
                instance["kept_weights"] = (
                    kept_weights(architecture, config, instance, online_weights, X, y, age)
                    if stage2
                    else instance["weights"]
                )
            if config.update_order == "in_turn":
                by_logits, _ = average_gradients(architecture, config, stored, weights, X, y, temperature)
            moved = np.any([instance["labels"] for instance in instances], axis=0)
            logits = logits - online_logits.step(by_logits, age, moved)
            if config.update_order == "in_turn":
                stored = evaluated(architecture, config, instances, logits, weights, X, y, random, temperature, step)

            if config.refresh_elites:
                for member in [instance["drawn"] for instance in instances if instance["drawn"]]:
                    member["loss"] = float(loss(architecture, member["selections"], before, X, y).real)
            elites.store([{**instance, "temperature": temperature} for instance in stored])
            compared = stored
            if config.best_form == "hard":
                structures = [hard(architecture, instance["selections"]) for instance in stored]
                compared = [
                    {**instance, "loss": float(loss(architecture, one, instance["weights"], every_X, every_y).real)}
                    for instance, one in zip(stored, structures, strict=True)
                ]
            best = min([best, *compared], key=lambda instance: instance["loss"])
            means.append(np.mean([instance["loss"] for instance in stored]))

            if stage2 and config.use_offline:
                density = config.offline_rule == "density"
                rule = density_gradient if density else squared_difference_gradient
                total = np.zeros(logits.shape)
                for uniform in random.offline:
                    selections = elites.draw(uniform, config)["selections"]
                    total += (-1.0 if density else 1.0) * rule(architecture, logits, selections, temperature)
                total /= config.offline_batch
                if config.average_choices:
                    total /= np.reshape(architecture.n_choices, (-1, 1))
                total = np.clip(total, -config.gradient_clip, config.gradient_clip)
                logits = logits - offline_logits.step(total, age)
            step += 1
    return {"logits": logits, "weights": weights, "elites": elites.members, "best": best, "means": np.array(means)}
