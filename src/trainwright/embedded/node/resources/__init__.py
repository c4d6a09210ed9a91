"""What the machine has and what pods use of it: GPUs and CPUs, allotted and measured."""
