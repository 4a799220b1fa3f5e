"""Which functions work on the target's logits: the region in which drafts are verified.

Logits, and probabilities made of them, are followed from the methods of the engine's own class
into the parameters of what they call. Drafters compute logits too, from another model; they are
not on this path, so a loop that drafts is never mistaken for one that verifies.

Some engines sample the target's token at every row first and verify the tokens. For them the flow
can be followed through what samplers return as well (`decisions`): a wider region, since later
steps, drafting among them, are handed tokens too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from .arguments import passed
from .program import ClassRef
from .reach import Reach, Reached
from .receivers import Receivers
from .taint import Flow, set_on_others, spread


@dataclass(slots=True, eq=False)
class Region:
    """The functions that receive the target's logits, each with the names that hold them.

    `attributes` are those that hold them in instances of a class; in a function they are among the
    names as `self.attribute`.
    """

    tainted: dict[Reached, set[str]] = field(default_factory=dict)
    # The parameters that callers hand logits.
    handed: dict[Reached, set[str]] = field(default_factory=dict)
    attributes: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    # The names of all of them, and of those that are set from outside their class.
    attribute_names: frozenset[str] = frozenset()

    def __contains__(self, reached: Reached) -> bool:
        return reached in self.tainted

    def over(self, narrower: Region) -> Region:
        """Both: what is known of a function in the narrower one holds."""
        return Region(
            {**self.tainted, **narrower.tainted},
            {**self.handed, **narrower.handed},
            self.attributes,
            narrower.attribute_names,
        )


def follow_logits(
    reach: Reach, receivers: Receivers, engine: Iterable[ClassRef], decisions: bool = False
) -> Region:
    """Follow the logits from the methods of the `engine` classes to a fixed point.

    Args:
        reach: what the engine's sampling step reaches.
        receivers: opens the functions' scopes.
        engine: the engine's class and its bases.
        decisions: follow what samplers make of the logits too.
    """
    owners = {cls.key for cls in engine}
    seeds: dict[Reached, set[str]] = {
        reached: set()
        for reached in reach.functions
        if reached.function.owner is not None and reached.function.owner.key in owners
    }
    return _follow(reach, receivers, seeds, Flow(True, decisions))


def follow_named_logits(reach: Reach, receivers: Receivers) -> Region:
    """The same where no engine class is known: whatever is called logits holds them."""
    seeds: dict[Reached, set[str]] = {reached: set() for reached in reach.functions}
    return _follow(reach, receivers, seeds, Flow(True, True))


def _follow(
    reach: Reach, receivers: Receivers, seeds: Mapping[Reached, set[str]], flow: Flow
) -> Region:
    """To a fixed point from some functions and their names; where `flow` is seeded, only there."""
    region = Region()
    queue: deque[Reached] = deque(seeds)
    region.tainted.update((reached, set(names)) for reached, names in seeds.items())
    while queue:
        reached = queue.popleft()
        here = replace(
            flow, seeded=flow.seeded and reached in seeds, attributes=region.attribute_names
        )
        names = region.tainted[reached] | _held(region, reached)
        names = spread(reached, receivers, names, here)
        region.tainted[reached] = names
        queue.extend(_keep_attributes(region, reach, receivers, reached, names, here))
        for target, parameters in passed(reach.edges[reached], reached, receivers, names, here):
            region.handed.setdefault(target, set()).update(parameters)
            known = region.tainted.get(target)
            if known is None or not parameters <= known:
                region.tainted[target] = (known or set()) | parameters
                queue.append(target)
    # Seeds without logits are not part of the region.
    region.tainted = {reached: names for reached, names in region.tainted.items() if names}
    return region


def _held(region: Region, reached: Reached) -> set[str]:
    """The attributes of the receiver that hold logits, as names."""
    if reached.receiver is None:
        return set()
    return {f"self.{name}" for name in region.attributes.get(reached.receiver.key, ())}


def _keep_attributes(
    region: Region,
    reach: Reach,
    receivers: Receivers,
    reached: Reached,
    names: set[str],
    flow: Flow,
) -> list[Reached]:
    """Note what a function stores in objects; the functions that have to be seen again for that.

    The engine's own instance holds everything, and is left out.
    """
    again: list[Reached] = []
    found = set(set_on_others(reached, receivers, names, flow))
    if reached.receiver is not None and not flow.seeded:
        kept = region.attributes.setdefault(reached.receiver.key, set())
        new = {name.removeprefix("self.") for name in names if name.startswith("self.")} - kept
        if new:
            kept |= new
            found |= new
            again = reach.of_receiver(reached.receiver)
            for method in again:
                region.tainted.setdefault(method, set())
    if found - region.attribute_names:
        region.attribute_names |= found
        again += [other for other in region.tainted if other not in again]
    return again
