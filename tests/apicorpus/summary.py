"""What a run of the corpus prints: the failing steps, a table by topic, and the totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from apicorpus.judgement import PRIORITIES, Result, facets_of

Json = dict[str, Any]
SHOWN_DIFFERENCES = 6


@dataclass
class Tally:
    """The steps of one topic: passed and failed by priority, and skipped."""

    scenarios: int = 0
    passed: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    skipped: int = 0

    def row(self, topic: str) -> str:
        figures = "".join(f"{self.passed[p]:>11}{self.failed[p]:>6}" for p in PRIORITIES)
        return f"{topic:<18}{self.scenarios:>10}{figures}{self.skipped:>6}"

    def add(self, other: Tally) -> None:
        self.scenarios += other.scenarios
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


class Summary:
    """Collects results; `priority` leaves out the checks that weigh less."""

    def __init__(self, priority: str | None = None) -> None:
        self._limit = PRIORITIES.index(priority or PRIORITIES[-1])
        self._topics: dict[str, Tally] = {}
        self._failures: list[tuple[Result, str, list[str]]] = []
        self._reasons: Counter[str] = Counter()
        self._steps: list[Json] = []

    def add(self, scenario: Json, results: Iterable[Result]) -> None:
        tally = self._topics.setdefault(scenario["name"].split("-")[0], Tally())
        tally.scenarios += 1
        for result in results:
            if PRIORITIES.index(result.priority) > self._limit:
                continue
            if result.skip is not None:
                tally.skipped += 1
                self._reasons[result.skip] += 1
                self._steps.append(result.as_json(result="skip"))
                continue
            worst, differences = result.verdict(facets_of(scenario))
            if worst is not None and PRIORITIES.index(worst) > self._limit:
                worst = None
            if worst is not None:
                self._failures.append((result, worst, differences))
                tally.failed[worst] += 1
            else:
                tally.passed[result.priority] += 1
            outcome = "fail" if worst else "pass"
            self._steps.append({**result.as_json(result=outcome), "failed_priority": worst})

    @property
    def total(self) -> Tally:
        total = Tally()
        for tally in self._topics.values():
            total.add(tally)
        return total

    def lines(self, most_failures: int, seconds: float) -> list[str]:
        """Everything to print."""
        failures = sorted(self._failures, key=lambda failure: (failure[0].scenario, failure[0].step))
        lines = [line for failure in failures[:most_failures] for line in _failure_lines(*failure)]
        if len(failures) > most_failures:
            lines += ["", f"… and {len(failures) - most_failures} more failing steps (--max-diffs, --json)"]
        titles = "".join(f"{f'{p} ok':>11}{'fail':>6}" for p in PRIORITIES)
        lines += ["", f"{'topic':<18}{'scenarios':>10}{titles}{'skip':>6}"]
        lines += [self._topics[topic].row(topic) for topic in sorted(self._topics)]
        total = self.total
        must = f"({total.failed['must']} of them must)"
        counts = f"{total.passed.total()} steps passed, {total.failed.total()} failed {must}, {total.skipped} skipped"
        lines += [total.row("TOTAL"), f"{counts}, {seconds:.1f} s"]
        return lines + [f"skipped {count} steps: {why}" for why, count in sorted(self._reasons.items())]

    def as_json(self) -> Json:
        total = self.total
        return {
            "passed": total.passed.total(),
            "failed": total.failed.total(),
            "must_failed": total.failed["must"],
            "skipped": total.skipped,
            "steps": self._steps,
        }


def _failure_lines(result: Result, worst: str, differences: list[str]) -> list[str]:
    lines = ["", f"FAIL {result.scenario} step {result.step} ({worst}) {result.request}", f"     {result.desc}"]
    lines += [f"     - {difference}" for difference in differences[:SHOWN_DIFFERENCES]]
    more = len(differences) - SHOWN_DIFFERENCES
    return [*lines, f"     … and {more} more differences"] if more > 0 else lines
