"""Boosted trees with XGBoost on several nodes: every node has data of its own, and all grow the same trees."""

import os
import socket

import numpy
import xgboost
from xgboost.tracker import RabitTracker

rank, world = int(os.environ["DMLC_TASK_ID"]), int(os.environ["DMLC_NUM_WORKER"])
host, port = socket.gethostbyname(os.environ["DMLC_TRACKER_URI"]), int(os.environ["DMLC_TRACKER_PORT"])
tracker = None
if rank == 0:  # the first node runs the tracker, by which the others find each other
    tracker = RabitTracker(n_workers=world, host_ip=host, port=port)
    tracker.start()
with xgboost.collective.CommunicatorContext(
    dmlc_tracker_uri=host, dmlc_tracker_port=port, dmlc_task_id=str(rank), dmlc_retry=20
):
    points = numpy.random.default_rng(rank).normal(size=(1000, 4))
    data = xgboost.DMatrix(points, label=points.sum(axis=1) > 0)
    parameters = {"objective": "binary:logistic", "eval_metric": "error", "nthread": 1}
    results = {}
    model = xgboost.train(parameters, data, 30, evals=[(data, "train")], evals_result=results, verbose_eval=False)
    if rank == 0:
        model.save_model(os.path.join(os.environ["TRAINWRIGHT_OUTPUT"], "model.json"))
        print(f"on {world} nodes, error below 5 %: {results['train']['error'][-1] < 0.05}", flush=True)
if tracker is not None:
    tracker.wait_for()
