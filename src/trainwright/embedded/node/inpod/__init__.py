"""What every Python process in a pod finds on its path: `sitecustomize`, and nothing else."""
