"""The node's HTTPS endpoint: logs, usage, exec, attach and port-forward, as a kubelet serves them."""
