"""A training without a framework: reports, a bar, colours, and a rank that fails if it is asked to."""

import math
import os
import sys
import time

from trainwright import progress

total, pause = int(os.environ.get("STEPS", "2000")), float(os.environ.get("PAUSE", "0.2"))
rank, fail_at = int(os.environ.get("JOB_COMPLETION_INDEX", "0")), int(os.environ.get("FAIL_AT", "0"))
print(f"\x1b[32mrank {rank} begins\x1b[0m", flush=True)
print(os.environ.get("SAY", "nothing to say"), flush=True)
name = os.environ.get("METRIC", "loss")
for step in range(1, total + 1):
    loss = 2.5 * math.exp(-step / (total / 6)) + 0.06 + 0.03 * math.sin(step)
    progress(step, total, **{name: loss, "accuracy": 1 - math.exp(-step / (total / 4)), "lr": 0.1 * 0.999**step})
    sys.stdout.write(f"\r{step}/{total} {'#' * (20 * step // total)}")
    sys.stdout.flush()
    if step % 10 == 0:
        print(f"\rstep {step}: loss {loss:.4f}          ", flush=True)
    if step == fail_at and rank == 1:
        raise ValueError(os.environ.get("SAY") or f"loss is NaN at step {step}")
    time.sleep(pause)
print("\nrank", rank, "is done", flush=True)
