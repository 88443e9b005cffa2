"""The verdict of a proof, recomputed from what is on the server at its end. Pure.

A line of accepted work is `number process fence attempt begin end`; prove_plan.py tells where it is kept.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headrace.ordered.prove_crew import Loss
from headrace.ordered.prove_plan import Plan

PATIENCE_S: Final = 1.0  # Beyond the lease, until a lost key is worked on again.
NANOSECONDS: Final = 1e9


@dataclass(frozen=True, slots=True)
class Verdict:
    promise: str
    found: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Work:
    """One message that was accepted as done."""

    number: int
    process: int
    fence: int
    attempt: int
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Again:
    """An attempt at a message whose holder before was lost."""

    fence: int
    begin_ns: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found on the server, and what happened on the way there."""

    done: Mapping[str, Sequence[Work]]  # By key, in the order of acceptance.
    left_over: Mapping[str, int]  # What should be empty by now, and how much is in it.
    refused: int
    losses: Sequence[Loss]
    again: Mapping[str, Sequence[Again]] = field(default_factory=dict)  # By key.
    outages: Sequence[tuple[int, int]] = ()  # When the server itself was away.


def parse_work(line: bytes) -> Work:
    return Work(*map(int, line.split()))


def judge(plan: Plan, evidence: Evidence) -> Iterator[Verdict]:
    counts = plan.counts()
    done = evidence.done
    total = sum(map(len, done.values()))

    wrong = sum(map(out_of_order, done.values()))
    yield Verdict("each key's messages were done in order", f"{len(done):,} keys, {wrong:,} out of order", wrong == 0)
    lost = sum(len(set(range(counts[key])) - {work.number for work in done.get(key, ())}) for key in counts)
    yield Verdict("no message was lost", f"{lost:,} lost of {plan.messages:,}", lost == 0)
    doubled = sum(more_than_once(works) for works in done.values())
    yield Verdict("no message was done twice", f"{doubled:,} done twice, {total:,} done", doubled == 0)
    overlaps = sum(map(overlapping, done.values()))
    yield Verdict("one consumer at a time worked on a key", f"{overlaps:,} overlaps", overlaps == 0)
    late = sum(accepted_late(works, evidence.again.get(key, ())) for key, works in done.items())
    found = f"{evidence.refused:,} refused, {late:,} accepted"
    yield Verdict("who came too late was refused", found, late == 0)
    yield judge_stalls(plan, evidence)
    left = {name: count for name, count in evidence.left_over.items() if count}
    found = ", ".join(f"{name} {count:,}" for name, count in left.items()) or "nothing"
    yield Verdict("nothing is left over", found, not left)


def judge_stalls(plan: Plan, evidence: Evidence) -> Verdict:
    limit_s = plan.lease_ms / 1000 + PATIENCE_S
    measured = list(stalls_s(evidence))
    longest_s = max(measured, default=0.0)
    found = f"{longest_s:.1f} s at most, {len(measured):,} keys" if measured else "no key was in the hands of one"
    return Verdict(f"a dead one's keys went on within {limit_s:g} s", found, longest_s <= limit_s)


# The checks of one key


def out_of_order(works: Sequence[Work]) -> int:
    """Messages that were done after a later one. A second time counts elsewhere."""
    seen: set[int] = set()
    highest = -1
    wrong = 0
    for work in works:
        wrong += work.number < highest and work.number not in seen
        seen.add(work.number)
        highest = max(highest, work.number)
    return wrong


def more_than_once(works: Sequence[Work]) -> int:
    return sum(count - 1 for count in Counter(work.number for work in works).values())


def overlapping(works: Sequence[Work]) -> int:
    """Work that began before other work of the key, accepted earlier, had ended."""
    latest_end_ns = 0
    overlaps = 0
    for work in works:
        overlaps += work.begin_ns < latest_end_ns
        latest_end_ns = max(latest_end_ns, work.end_ns)
    return overlaps


def accepted_late(works: Sequence[Work], again: Sequence[Again]) -> int:
    """Work that was accepted under an older fence than one that had been accepted before, or had begun to work."""
    highest = 0
    late = 0
    for work in works:
        is_overtaken = any(other.fence > work.fence and other.begin_ns < work.end_ns for other in again)
        late += work.fence < highest or is_overtaken
        highest = max(highest, work.fence)
    return late


def stalls_s(evidence: Evidence) -> Iterator[float]:
    """How long each lost key waited until somebody worked on it: work that was accepted, or another attempt under a
    later fence. Such an attempt may come to nothing, as when its consumer leaves in the middle; the key went on.

    Where that one was lost as well, only the last loss is measured. Where the server was away, none is.
    """
    losses: dict[str, list[Loss]] = {}
    for loss in evidence.losses:
        losses.setdefault(loss.key, []).append(loss)
    for lost in losses.values():
        lost.sort(key=lambda one: one.at_ns)
        for loss, following in zip(lost, [*lost[1:], None], strict=True):
            again_ns = begun_again_ns(evidence, loss)
            if again_ns is None:
                continue
            is_superseded = following is not None and following.at_ns < again_ns
            was_away = any(begin < again_ns and loss.at_ns < end for begin, end in evidence.outages)
            if not is_superseded and not was_away:
                yield (again_ns - loss.at_ns) / NANOSECONDS


def begun_again_ns(evidence: Evidence, loss: Loss) -> int | None:
    """None: nobody had to, the key had nothing left to do."""
    begins = [work.begin_ns for work in evidence.done.get(loss.key, ())]
    begins += [again.begin_ns for again in evidence.again.get(loss.key, ()) if again.fence > loss.fence]
    return min((begin_ns for begin_ns in begins if begin_ns > loss.at_ns), default=None)
