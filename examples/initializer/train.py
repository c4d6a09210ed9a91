"""Fits a line to the points that an initializer has fetched, with nothing but Python."""

import csv
import os
import pathlib

points = pathlib.Path(os.environ.get("DATASET", "/workspace/dataset")) / "points.csv"
with points.open() as file:
    rows = [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)]
print(f"{len(rows)} points from {points}", flush=True)

slope = offset = 0.0
for _ in range(300):
    errors = [(slope * x + offset - y, x) for x, y in rows]
    slope -= 0.5 * sum(error * x for error, x in errors) / len(rows)
    offset -= 0.5 * sum(error for error, _ in errors) / len(rows)
print(f"y = {slope:.1f}x {offset:+.1f}", flush=True)
