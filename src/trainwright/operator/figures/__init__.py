"""What Prometheus is told: `metrics` of the engine, `lifecycle` of the TrainJobs, `devices` of their GPUs.

All are counted in `tallies`.
"""
