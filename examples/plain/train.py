"""Fits a line to points with nothing but Python. Every node tries other starting points; each keeps its best."""

import json
import os
import pathlib
import random

node = int(os.environ.get("JOB_COMPLETION_INDEX", 0))
output = pathlib.Path(os.environ.get("TRAINWRIGHT_OUTPUT", "."))
points = [(x / 10, 3 * x / 10 - 1) for x in range(-20, 21)]


def loss_of(slope, offset):
    return sum((slope * x + offset - y) ** 2 for x, y in points) / len(points)


dice = random.Random(node)
slope, offset = dice.uniform(-5, 5), dice.uniform(-5, 5)
for step in range(1, 201):
    errors = [(slope * x + offset - y, x) for x, y in points]
    slope -= 0.1 * sum(error * x for error, x in errors) / len(points)
    offset -= 0.1 * sum(error for error, _ in errors) / len(points)
    if step % 100 == 0:
        print(f"step {step}  loss {loss_of(slope, offset):.4f}", flush=True)
(output / f"line-{node}.json").write_text(json.dumps({"slope": round(slope, 2), "offset": round(offset, 2)}))
print(f"y = {slope:.1f}x {offset:+.1f}")
