"""Least squares with TensorFlow's MultiWorkerMirroredStrategy, which reads TF_CONFIG."""

from __future__ import annotations

import json
import os

import tensorflow as tf
from report import line_data, linger, report

strategy = tf.distribute.MultiWorkerMirroredStrategy()
resolver = strategy.cluster_resolver
rank, world = resolver.task_id, len(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"])
x, y = (tf.constant(part) for part in line_data(rank, world))
with strategy.scope():
    weights = tf.Variable(tf.zeros((2, 1)))


@tf.function
def step():
    def mine():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights[:1] + weights[1] - y) ** 2)
        gradient = tf.distribute.get_replica_context().all_reduce("MEAN", tape.gradient(loss, weights))
        weights.assign_sub(0.3 * gradient)
        return loss

    return strategy.reduce("MEAN", strategy.run(mine), axis=None)


losses = []
for _ in range(40):
    losses.append(float(step()))
    linger()
report(rank, strategy.num_replicas_in_sync, losses, [weights.numpy()])
