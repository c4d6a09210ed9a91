"""Runs plans that are given as lines, or all of them, and prints what is wrong and how much was tried."""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import sys
import time
from collections import Counter

from trainwright.testing.plans.generator import all_plans
from trainwright.testing.plans.plan import Plan, parse
from trainwright.testing.plans.verdict import Verdict, verdict


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m trainwright.testing.plans", description=__doc__)
    parser.add_argument("plans", nargs="*", metavar="PLAN", help="such as 'W4 0 unheard@3'")
    parser.add_argument("--all", action="store_true", help="every plan there is")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="only the Ith of N parts, each with some of all")
    parser.add_argument("--wide", action="store_true", help="nothing is drawn: all that is possible at each write")
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()
    plans = [parse(line) for line in flags.plans]
    if flags.all:
        part, of = map(int, flags.part.split("/"))
        found = asyncio.run(all_plans(flags.seed, wide=flags.wide))
        random.Random(flags.seed).shuffle(found)  # noqa: S311 - so that every part has some of all
        found = found[part - 1 :: of]
        plans += found
    gc.disable()  # a run leaves large cycles, which are collected now and then
    began, cpu = time.monotonic(), time.process_time()
    verdicts = [_judged(number, plan) for number, plan in enumerate(plans)]
    kinds = Counter(fault.kind for plan in plans for fault in plan.faults)
    print("\n".join(f"{kind:14}{count:6}" for kind, count in sorted(kinds.items())))
    spent = f"{time.monotonic() - began:.0f} s, {time.process_time() - cpu:.0f} s of CPU"
    failing = sum(bool(found.wrong) for found in verdicts)
    in_window = sum(bool(found.in_window) for found in verdicts)
    print(f"{len(plans)} plans, {failing} failing, {in_window} in the known window, seed {flags.seed}, {spent}")
    return 1 if failing else 0


def _judged(number: int, plan: Plan) -> Verdict:
    if number % 25 == 0:
        gc.collect()
        print(f"\r{number} plans", end="", file=sys.stderr, flush=True)
    found = asyncio.run(verdict(plan))
    if found.wrong:
        print(f"FAILED {plan}\n  " + "\n  ".join(found.wrong), flush=True)
    elif found.in_window:
        print(f"known window: {plan}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
