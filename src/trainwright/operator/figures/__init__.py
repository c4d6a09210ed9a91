"""What Prometheus is told: `metrics` of the engine, `lifecycle` of the TrainJobs, both counted in `tallies`."""
