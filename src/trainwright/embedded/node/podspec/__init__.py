"""What a pod's spec means on this machine: `launch` resolves it to a `PodToRun`, `support` says what cannot be had."""
