"""The target's logits are followed to where drafts are verified, and nowhere else."""

from __future__ import annotations

import pytest

from ddtree.analyzers.program.dataflow import follow_named_logits

from .programs import Loaded, holders

ENGINE = """
from accept import *
class Engine:
    def __init__(self, model, drafter):
        self.model = model
    def step(self, hidden, metadata, tokens):
        logits = self.model.compute_logits(hidden)
        BODY
"""


def flow(body: str, accept: str, *, decisions: bool = False) -> dict[str, set[str]]:
    """Where logits go from an engine whose step ends with `body`; without the engine itself."""
    names = [
        line.split()[1].partition("(")[0].rstrip(":")
        for line in accept.splitlines()
        if line.startswith(("def ", "class "))
    ]
    engine = ENGINE.replace("*", ", ".join(names)).replace("BODY", body.replace("\n", "\n        "))
    code = Loaded({"engine.py": engine, "accept.py": accept})
    found = holders(code.logits("engine:Engine", "step", decisions=decisions))
    assert "logits" in found.pop("Engine.step")
    return found


ACCEPT = "def accept(scores, rows, *rest, **more): ..."


@pytest.mark.parametrize(
    ("body", "held"),
    [
        ("accept(logits, tokens)", {"scores"}),
        ("accept(tokens, logits)", {"rows"}),
        ("accept(tokens, rows=logits)", {"rows"}),
        ("accept(tokens, tokens, logits)", {"rest"}),
        ("accept(*logits)", {"scores", "rows", "rest", "more"}),
        ("accept(**{'rows': logits})", {"scores", "rows", "rest", "more"}),
        ("accept(logits.float(), tokens)", {"scores"}),
        ("accept(torch.softmax(logits, -1), tokens)", {"scores"}),
        ("best = torch.argmax(logits, -1)\naccept(tokens, best)", {"rows"}),
        ("best, other = logits.max(-1)\naccept(tokens, best)", {"rows"}),
        ("chosen: object = logits[0]\naccept(chosen, tokens)", {"scores"}),
        ("accept(logits if tokens else None, tokens)", {"scores"}),
        ("accept((logits, tokens), tokens)", {"scores"}),
        ("for row in logits:\n    accept(row, tokens)", {"scores"}),
        ("for i, row in enumerate(logits):\n    accept(i, row)", {"rows"}),
        ("for token, row in zip(tokens, logits):\n    accept(token, row)", {"rows"}),
        (
            "for i, (token, row) in enumerate(zip(tokens, logits)):\n    accept(token, row)",
            {"rows"},
        ),
        ("accept([row for row in logits], tokens)", {"scores"}),
    ],
)
def test_arguments_hold_logits(body: str, held: set[str]) -> None:
    assert flow(body, ACCEPT) == {"accept": held}


@pytest.mark.parametrize(
    "body",
    [
        "accept(tokens, hidden)",
        "accept(logits.shape[0], logits.device)",
        "accept(tokens.to(logits.dtype), logits.ndim)",
        "accept(tokens[logits.argmax(-1)], tokens)",
        "accept(table.get(logits), tokens)",
        "accept(tokens.gather(1, logits), tokens)",
        "accept(torch.gather(tokens, 1, logits), tokens)",
        "for i in range(len(logits)):\n    accept(i, tokens)",
        "for token, row in zip(tokens, logits):\n    accept(token, tokens)",
        "for i, row in enumerate(logits):\n    accept(i, tokens)",
    ],
)
def test_arguments_that_only_tell_of_logits_or_are_chosen_by_them(body: str) -> None:
    assert flow(body, ACCEPT) == {}


def test_logits_go_on_from_function_to_function() -> None:
    accept = """
def accept(scores):
    best = scores.argmax(-1)
    return walk(0, best, scores.shape)
def walk(start, target, shape): ...
def never(scores): ...
"""
    assert flow("accept(logits)", accept) == {"accept": {"scores", "best"}, "walk": {"target"}}


def test_a_kernel_that_is_launched() -> None:
    accept = """
def accept(scores, out):
    kernel[(1,)](out, scores)
def kernel(out_ptr, target_ptr): ...
"""
    assert flow("accept(logits, tokens)", accept)["kernel"] == {"target_ptr"}


def test_a_wrapper_hands_everything_to_what_its_decorator_names() -> None:
    accept = """
def dispatched(kernel):
    def decorate(function): return function
    return decorate
def kernel(out_ptr, target_ptr): ...
@dispatched(kernel)
def accept(scores, out): ...
"""
    found = flow("accept(logits, tokens)", accept)

    assert found["accept"] == {"scores"}
    assert found["kernel"] == {"out_ptr", "target_ptr"}


def test_a_function_that_is_handed_over_together_with_logits() -> None:
    accept = """
def apply(function, scores): ...
def accept(target): ...
"""
    found = flow("apply(accept, logits)", accept)

    assert found["apply"] == {"scores"}


def test_logits_kept_by_a_constructor() -> None:
    accept = """
class Verifier:
    def __init__(self, scores, tokens):
        self.scores = scores
        self.tokens = tokens
    def run(self):
        return walk(self.tokens, self.scores)
def walk(tokens, target): ...
"""
    found = flow("Verifier(logits, tokens).run()", accept)

    assert found["walk"] == {"target"}
    assert "self.scores" in found["Verifier.run"]
    assert "self.tokens" not in found["Verifier.run"]


def test_logits_kept_by_one_method_and_used_by_another() -> None:
    accept = """
class Verifier:
    def use(self): return walk(self.kept)
    def keep(self, scores): self.kept = scores.argmax(-1)
def walk(target): ...
"""
    found = flow("verifier = Verifier()\nverifier.keep(logits)\nverifier.use()", accept)

    assert found["walk"] == {"target"}


def test_a_module_that_is_called() -> None:
    accept = """
class Sampler:
    def forward(self, metadata, scores): return walk(scores)
def walk(target): ...
"""
    found = flow("sampler = Sampler()\nsampler(metadata, logits)", accept)

    assert found == {"Sampler.forward": {"scores"}, "walk": {"target"}}


DECIDES = """
class Sampler:
    def forward(self, scores): return scores.argmax(-1)
def verify(tokens, target): ...
"""


@pytest.mark.parametrize(("decisions", "reached"), [(False, False), (True, True)])
def test_what_samplers_return_is_a_decision(decisions: bool, reached: bool) -> None:
    body = "sampler = Sampler()\nchosen = sampler(logits)\nverify(tokens, chosen)"
    found = flow(body, DECIDES, decisions=decisions)

    assert found["Sampler.forward"] == {"scores"}
    assert ("verify" in found) == reached


def test_a_drafter_computes_logits_of_another_model() -> None:
    accept = """
class Drafter:
    def propose(self, hidden):
        logits = self.model.compute_logits(hidden)
        return choose(logits)
def choose(scores): ...
"""
    assert flow("drafter = Drafter()\ndrafter.propose(hidden)", accept) == {}


def test_without_an_engine_the_name_decides() -> None:
    source = """
def verify(logits, tokens):
    best = logits.argmax(-1)
    return walk(tokens, best)
def walk(tokens, target): ...
def other(tokens): return walk(tokens, tokens)
"""
    code = Loaded({"m.py": source})
    found = holders(follow_named_logits(code.reach("m:verify", "m:other"), code.receivers))

    assert found == {"verify": {"logits", "best"}, "walk": {"target"}}


TAKES = "def accept(scores, rows): ..."
BOX = "class Box:\n    def __init__(self, scores=None): self.scores = scores\n"


@pytest.mark.parametrize(
    "body",
    [
        "if (best := logits.argmax(-1)) is not None:\n    accept(best, tokens)",
        "total = 0\ntotal += logits\naccept(total, tokens)",
        "rows = []\nrows.append(logits)\naccept(rows, tokens)",
        "self.buffer[:3] = logits\naccept(self.buffer, tokens)",
        "buffer = torch.empty(3)\nbuffer.copy_(logits)\naccept(buffer, tokens)",
        "buffer = torch.empty(3)\ntorch.argmax(logits, out=buffer)\naccept(buffer, tokens)",
        "x = Box(logits)\naccept(x.scores, tokens)",
        "x = Box()\nx.scores = logits\naccept(x.scores, tokens)",
    ],
)
def test_logits_stored_in_other_ways_are_followed(body: str) -> None:
    assert flow(body, f"{TAKES}\n{BOX}").get("accept") == {"scores"}


@pytest.mark.parametrize("argument", ["logits.size(0)", "logits.numel()", "logits is None"])
def test_what_only_describes_logits_holds_none(argument: str) -> None:
    assert flow(f"accept(tokens, {argument})", TAKES) == {}


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("@staticmethod\n    def run(scores)", "Verifier.run(logits)"),
        ("@staticmethod\n    def run(scores)", "Verifier().run(logits)"),
        ("def run(self, scores)", "Verifier.run(Verifier(), logits)"),
        ("@classmethod\n    def run(cls, scores)", "Verifier.run(logits)"),
    ],
)
def test_arguments_meet_their_parameters(method: str, call: str) -> None:
    source = f"class Verifier:\n    {method}: walk(scores)\ndef walk(target): ..."

    assert flow(call, source).get("walk") == {"target"}
