"""The HorizontalPodAutoscaler controller, by the rules of kube-controller-manager.

replicas     what one metric asks for: ratios, tolerance, pods that are not ready or not measured
limits       what of it is allowed: recent recommendations, rates, the fewest and the most
decision     all metrics of one autoscaler, its status and its conditions
controller   reads scale, pods and metrics every 15 s, and writes
"""
