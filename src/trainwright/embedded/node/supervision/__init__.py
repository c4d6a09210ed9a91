"""The processes that run a pod: a supervisor for each, a keeper for each container. They outlive the control plane.

Everything in here, and what it imports, needs the standard library only: a supervisor starts in milliseconds.
"""
