"""The pods that this machine runs or ran: a directory for each, its process, and its state in Kubernetes' form."""
