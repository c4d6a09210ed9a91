"""What runs in a cluster: reconcilers, webhooks, certificates, progress server, metrics, and their manager."""
