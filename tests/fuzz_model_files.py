"""Feeds hostile model files to the loader under an audit hook; run as its own process, because a hook stays for good.

usage: python fuzz_model_files.py MUTATIONS SEED

Prints one JSON object: how many files were refused, loaded, raised something else; what forbidden events the hook saw;
the slowest load (seconds of computing) and the memory the loads took. `tests/model/files/test_model_file.py` judges it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from gmeql.formula.expression import Expression
from gmeql.formula.nodes import Call, Constant, Variable
from gmeql.model.files.model_file import StoredModel, checksum_of, load_model, save_model
from gmeql.model.files.storage import StorageError
from gmeql.model.pareto.front import Front
from gmeql.model.pareto.member import FrontMember

FORBIDDEN = (
    "exec",
    "compile",
    "import",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "subprocess.Popen",
    "pickle.find_class",
    "marshal.loads",
    "code.__new__",
    "ctypes.dlopen",
    "socket.connect",
    "shutil.rmtree",
    "os.remove",
    "os.rename",
    "os.chmod",
    "os.mkdir",
)

COMMANDS = [
    "__import__('os').system('touch pwned')",
    "os.system('touch pwned')",
    "!!python/object/apply:os.system ['touch pwned']",
    "{{7*7}}",
    "${jndi:ldap://x}",
    "=cmd|' /C calc'!A0",
    "<script>alert(1)</script>",
    "lambda: 0",
    "x\u200bl",
    "\u202egpj.exe",
    "",
    "\x00",
    "a" * 100_000,
    "\ud800",
]


def example_model() -> StoredModel:
    names = ("a", "b", "c")
    line = Expression(Call("add", (Constant(0.5), Call("mul", (Constant(1.25), Variable(1))))), names)
    root = Call("sqrt", (Call("add", (Constant(1.3), Call("div", (Variable(1), Variable(0))))),), protected=True)
    members = [
        FrontMember(e, loss, e.complexity, 0.0, -1)
        for e, loss in [
            (Expression(Constant(2.0), names), 3.0),
            (line, 1.0),
            (Expression(Call("mul", (Constant(2.5), root, Call("pow", (Variable(2), Constant(-1.5))))), names), 1e-9),
        ]
    ]
    front = Front.from_members(members, rows=100, target_spread=2.0, target_largest=7.0)
    return StoredModel(
        parameters={"method": "fitted", "functions": ["+", "*"], "max_time": 3.0, "random_state": 0},
        feature_names=names,
        n_features=3,
        fronts=(front,),
        selected=(1,),
        target_columns=None,
        candidates=1234,
        seconds=2.5,
        ranges=((0.0, 1.0), (-2.0, 5.5), (1.0, 1.0)),
        table_columns=("label", "a", "b", "target", "c"),
    )


def paths_of(value: Any, path: tuple = ()) -> list[tuple]:
    found = [path]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += paths_of(item, (*path, key))
    return found


def put(tree: Any, path: tuple, value: Any) -> Any:
    """A copy of `tree` with `value` at `path`."""
    if not path:
        return value
    tree = copy.deepcopy(tree)
    place = tree
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return tree


def sealed(envelope: dict[str, Any]) -> bytes:
    """The file's bytes with a checksum that fits, as a forger would write them."""
    envelope = dict(envelope)
    try:
        envelope["checksum"] = checksum_of(envelope["payload"])
    except (ValueError, TypeError):  # not a JSON number, or keys of two kinds; the forger leaves the old one
        pass
    return json.dumps(envelope).encode("utf-8", "surrogatepass")


def crafted(envelope: dict[str, Any]) -> list[bytes]:
    """Hand-made attacks: wrong values in every field, hostile texts, bombs of nesting and size, other formats."""
    call = {"call": "add", "args": []}
    values: list[Any] = [None, True, -1, 10**30, 1e308, float("nan"), "x", [], {}, [[]] * 50, call]
    files = []
    for path in paths_of(envelope["payload"]):
        files += [sealed({**envelope, "payload": put(envelope["payload"], path, value)}) for value in values]
    for text in COMMANDS:
        for path in (("feature_names", 0), ("parameters", "method"), ("parameters", text), ("parameters", "functions")):
            files.append(sealed({**envelope, "payload": put(envelope["payload"], path, text)}))
        nodes = ("fronts", 0, "members", 1, "expression", "nodes")
        for node in ({"call": text, "args": [0]}, {"constant": text}, {"variable": text}, {text: 1}):
            files.append(sealed({**envelope, "payload": put(envelope["payload"], (*nodes, 3), node)}))
    nodes = ("fronts", 0, "members", 0, "expression", "nodes")
    deep = [{"variable": 0}] + [{"call": "sin", "args": [k]} for k in range(9_000)]
    wide = [{"constant": 1.0}] * 9_000 + [{"call": "add", "args": list(range(9_000))}]
    shared = [{"variable": 0}] + [{"call": "mul", "args": [k, k]} for k in range(60)]  # 2**60 nodes if followed
    tower = [{"constant": 9.0}] * 5 + [{"call": "pow", "args": [0, 1]}, {"call": "pow", "args": [2, 5]}]
    for attack in (deep, wide, shared, tower, [{"variable": 0}] * 100_000, [{"constant": 1e999}]):
        files.append(sealed({**envelope, "payload": put(envelope["payload"], nodes, attack)}))
    plain = json.dumps(envelope).encode()
    files += [
        b"", b"{", b"null", b"[]", b"{}", b"\xff\xfe", plain[: len(plain) // 2], plain + b"x", plain * 2,
        b"\xef\xbb\xbf" + plain,
        plain.decode().encode("utf-16"), b"[" * 1_000_000, b'{"a":' * 200_000, b"[[]," * 500_000, b"9" * 1_000_000,
        b'{"format":"gmeql-model","version":' + b"1" * 100_000 + b"}", b"\x80\x04cos\nsystem\n(S'touch pwned'\ntR.",
        b"PK\x03\x04" + b"\0" * 1000, b"\x00" * 3_000_000, b" " * 4_000_000, b"[" + b"{}," * 1_300_000 + b"{}]",
        b"[" + b"1e1," * 1_000_000 + b"1]", b'"' + b"\\u0041" * 600_000 + b'"', b"x" * ((4 << 20) + 1),
        plain.replace(b'"version": 2', b'"version": 3'), plain.replace(b'"version": 2', b'"version": "2"'),
        plain.replace(b'"version": 2', b'"version": 2, "version": 2'), plain.replace(b"1.25", b"NaN"),
        plain.replace(b"1.25", b"-Infinity"), plain.replace(b"1.25", b"1e400"),
        plain.replace(b"gmeql-model", b"gmeql-checkpoint"),
    ]  # fmt: skip
    return files


def mutations(plain: bytes, envelope: dict[str, Any], count: int, seed: int) -> Any:
    """`count` random changes: half of them of bytes, half of values with a checksum that fits."""
    rng = random.Random(seed)
    places = [path for path in paths_of(envelope["payload"]) if path]
    spare = [None, False, 0, 1, -1, 2, 3, 0.5, -0.0, 1e-320, 1e308, 2**53, "", "add", "sin", "sum", [], {}, [0], [0, 0]]
    inserts = (b'"', b"{", b"]", b"9" * 30, b"e9", b"\\u0000", b"null", b"\xff")
    for number in range(count):
        if number % 2:
            data = bytearray(plain)
            for _ in range(rng.choice((1, 1, 2, 8))):
                if not data:
                    break
                kind, place = rng.randrange(5), rng.randrange(len(data))
                if kind == 0:
                    data[place] ^= 1 << rng.randrange(8)
                elif kind == 1:
                    data[place] = rng.randrange(256)
                elif kind == 2:
                    del data[place : place + rng.randrange(1, 20)]
                elif kind == 3:
                    data[place:place] = rng.choice(inserts)
                else:
                    data = data[:place] or data
            yield bytes(data)
            continue
        payload = envelope["payload"]
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            path = rng.choice(places)
            try:
                value = rng.choice(spare) if rng.random() < 0.7 else copy.deepcopy(_get(payload, rng.choice(places)))
                payload = put(payload, path, value)
            except (KeyError, IndexError, TypeError):  # an earlier change removed that place
                continue
        yield sealed({**envelope, "payload": payload})


def _get(tree: Any, path: tuple) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def main(count: int, seed: int) -> None:
    import numpy as np

    warnings.simplefilter("ignore")  # of rows without names; said once per call otherwise
    from gmeql.estimator import GMEQLRegressor

    folder = Path(tempfile.mkdtemp())
    good = folder / "good.json"
    save_model(good, example_model())
    plain = good.read_bytes()
    envelope = json.loads(plain)
    rows = np.array([[1.0, 2.0, 3.0]])
    watching = False
    events: list[str] = []

    def hook(event: str, args: tuple) -> None:
        if watching and event in FORBIDDEN:
            events.append(f"{event} {args!r:.100}")
        if watching and event == "open" and args[1] is not None and set(str(args[1])) & set("wax+"):
            events.append(f"open {args!r:.100}")

    def use(path: Path) -> None:
        model = GMEQLRegressor.load(path)
        str(model.expression_), model.expression_.latex(), model.predict(rows) if model.n_features_in_ == 3 else None
        stored = load_model(path)
        again = Front.from_dict(json.loads(json.dumps(stored.fronts[0].to_dict())))
        assert list(again) == list(stored.fronts[0])

    use(good)  # imports what loading needs, before the hook looks
    sys.addaudithook(hook)
    outcome = {"crafted": 0, "mutated": 0, "refused": 0, "loaded": 0}
    wrong: list[str] = []
    slowest = 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    hand_made = crafted(envelope)
    outcome["crafted"], outcome["mutated"] = len({hashlib.sha256(f).digest() for f in hand_made}), count
    path = folder / "model.json"
    for number, data in enumerate((*hand_made, *mutations(plain, envelope, count, seed))):
        path.write_bytes(data)
        watching, start = True, time.process_time()
        try:
            use(path)
            outcome["loaded"] += 1
        except StorageError as error:
            outcome["refused"] += 1
            if "\n" in str(error) or len(str(error)) > 1000:
                wrong.append(f"file {number}: message of {len(str(error))} characters")
        except Exception as error:  # noqa: BLE001 - what must not happen is what this program counts
            wrong.append(f"file {number}: {type(error).__name__}: {error!s:.200}")
        slowest = max(slowest, time.process_time() - start)
        watching = False
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    findings = {"wrong": wrong[:20], "events": events[:20]}
    print(json.dumps({**outcome, **findings, "slowest": slowest, "megabytes": (after - before) / 1024}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
