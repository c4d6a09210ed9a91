"""The operator beside the one it replaces: same control plane, same load, one after the other.

contenders   what is compared: Kubeflow Trainer as shipped and with its limits lifted, and ours as shipped
stage        one contender on a control plane of its own, with a fresh etcd
load         the load generator, a process of its own
vitals       CPU and memory of a process, and when it has become quiet
requests     what a contender asked the API server, counted from the audit log
scenarios    what is done on a stage, and which figures come of it
growth       the same for thousands of suspended TrainJobs and for objects that are none of the operator's business
measures     which figures are compared, and what they should be
results      the result file: every run with its figures, ratios and medians over the runs
limits       bench/limits.toml: ratios that were reached, and what makes one worse
report       tables for the terminal
plot         the result as SVG
"""
