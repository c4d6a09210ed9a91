"""Trainwright: distributed ML training on Kubernetes or on a laptop, from the same YAML.

Start with ``docs/architecture.md``, which follows one TrainJob through these packages.
"""
