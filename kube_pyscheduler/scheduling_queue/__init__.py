"""Pods that wait: activeQ, backoffQ, unschedulable pods, the in-flight log, nominations.

The queue is passive: it never waits and reads no clock. ``scheduler`` drives it.
"""
