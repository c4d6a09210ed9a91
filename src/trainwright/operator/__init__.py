"""What runs in a cluster: the reconcilers, admission webhooks, certificates, progress server, metrics, and their
manager.
"""
