"""The outcome as lines for grep: `label: value`, never wrapped.

Of a plan the diff stands between them, and the command that executes it is the last line.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from ....patches import hints
from ....patches.perform import Applied, Bundled, Outcome, Planned, Reverted
from ....patches.plan import Plan
from ....patches.status import State, Status
from ....patches.way import Way
from ..text import clean


def render(outcome: Outcome, *, whole: bool = True) -> str:
    """All of the outcome; `whole` with every file that is laid beside vLLM."""
    head, diff, tail = parts(outcome, whole=whole)
    return head + diff + tail


def parts(outcome: Outcome, *, whole: bool = True) -> tuple[str, str, str]:
    """What comes before the diff of a plan, the diff, and what comes after it."""
    head = "".join(f"{clean(line)}\n" for line in _lines(outcome, whole))
    if not isinstance(outcome, Planned):
        return head, "", ""
    tail = "".join(f"{clean(line)}\n" for line in _next(outcome.plan))
    return head, clean_diff(outcome.plan), tail


def clean_diff(plan: Plan) -> str:
    """The diff, safe to print."""
    return "".join(clean(line, "\n\t") for line in plan.diff.splitlines(keepends=True))


def _lines(outcome: Outcome, whole: bool) -> Iterator[str]:
    if isinstance(outcome, Planned):
        yield from plan_lines(outcome.plan, whole=whole)
    elif isinstance(outcome, Applied):
        yield f"applied: plan {outcome.plan.id}: {outcome.plan.location}"
        yield from (f"note: {note}" for note in (*outcome.plan.notes, *outcome.notes))
    elif isinstance(outcome, Reverted):
        yield f"reverted: {outcome.status.location}: {outcome.sentence}"
    elif isinstance(outcome, Bundled):
        yield f"bundle: plan {outcome.plan.id}: {outcome.folder}"
        script = shlex.quote(f"{outcome.folder}/apply.py")
        yield f"run: python {script} SITE, with the target's interpreter"
    else:
        yield from status_lines(outcome)


def _next(plan: Plan) -> Iterator[str]:
    yield "nothing was written"
    # An archive is never changed.
    how = ("--bundle", "DIR") if Path(plan.location).is_file() else ("--apply",)
    if plan.local_edits:
        how = (*how, hints.LOCAL_EDITS)
    run = hints.patch(plan.target, *how, *plan.options, "--plan", plan.id, named=plan.named)
    yield f"run: {run}"


def plan_lines(plan: Plan, *, whole: bool = True) -> Iterator[str]:
    """A plan without its diff; `whole` with every file that is laid beside vLLM."""
    yield f"plan: {plan.id}"
    yield f"target: {plan.distribution or 'vllm'} {plan.identity.version}: {plan.location}"
    yield f"recipe: {plan.recipe.name}: {plan.why}"
    for item in plan.edits:
        yield f"edit: {item.file}: {item.old_sha256} -> {item.new_sha256}: {', '.join(item.hooks)}"
    if plan.way == Way.PLUGIN:
        yield "edits: none: a plug-in assigns these hooks whenever vLLM starts"
        for anchor in plan.recipe.anchors:
            yield f"hook: {anchor.file}: {anchor.name}: {anchor.hook}"
    size = sum(len(data) for data in plan.installed.values())
    tops = sorted({path.partition("/")[0] for path in plan.installed})
    yield f"beside vLLM: {len(plan.installed)} files, {size} bytes: {', '.join(tops)}"
    if whole:
        yield from (f"install: {path}" for path in plan.installed)
    yield from (f"note: {note}" for note in plan.notes)


def status_lines(status: Status) -> Iterator[str]:
    """A status."""
    yield f"status: {status.state}: {status.sentence}"
    yield f"target: vLLM {status.version or '(version unknown)'}: {status.location}"
    yield from (f"file: {file}: {state}" for file, state in status.files.items())
    put = "this ddtree lays" if status.state == State.UNTRACKED else "ddtree put"
    for path in status.runtime:
        how = f"missing, or not as {put} it there"
        if path in status.unreadable:
            how = "not to be read by all who can read vLLM"
        yield f"runtime: {path}: {how}"
    yield from (f"left over: {path}: nothing loads it" for path in status.leftovers)
    yield from (f"foreign: {path}: changed by somebody else" for path in status.foreign)
    if status.outdated:
        yield "outdated: another ddtree applied it; revert it first to apply this one"
    if status.state == State.UNTRACKED and status.whole:
        yield "nothing to repair: --revert gives every byte back"
    yield from (f"run: {command}" for command in status.repair)
    yield from (f"note: {note}" for note in status.notes)
