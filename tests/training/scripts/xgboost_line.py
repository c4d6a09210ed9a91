"""Boosted trees on several workers: rank 0 runs the tracker, each worker has a share of the data."""

from __future__ import annotations

import os
import threading

import numpy
import xgboost
from report import linger, report
from xgboost.tracker import RabitTracker


class Lingering(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log) -> bool:
        linger()
        return False


rank, world = int(os.environ["DMLC_TASK_ID"]), int(os.environ["DMLC_NUM_WORKER"])
uri, port = os.environ["DMLC_TRACKER_URI"], int(os.environ["DMLC_TRACKER_PORT"])
tracker = None
if rank == 0:
    tracker = RabitTracker(n_workers=world, host_ip=uri, port=port, sortby="task")
    tracker.start()
    waiting = threading.Thread(target=tracker.wait_for)
    waiting.start()

with xgboost.collective.CommunicatorContext(
    dmlc_tracker_uri=uri, dmlc_tracker_port=port, dmlc_task_id=str(rank), dmlc_retry=20
):
    generator = numpy.random.default_rng(xgboost.collective.get_rank())
    x = generator.normal(size=(400, 4))
    y = (x[:, 0] + x[:, 1] ** 2 > 0.5).astype(int)
    history: dict = {}
    data = xgboost.DMatrix(x, label=y)
    model = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 3, "nthread": 1},
        data,
        num_boost_round=40,
        evals=[(data, "train")],
        evals_result=history,
        verbose_eval=False,
        callbacks=[Lingering()],
    )
    trees = numpy.frombuffer("".join(model.get_dump()).encode(), dtype="uint8")
    report(xgboost.collective.get_rank(), xgboost.collective.get_world_size(), history["train"]["logloss"], [trees])
if tracker is not None:
    waiting.join()
