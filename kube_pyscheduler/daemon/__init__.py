"""The process: start and stop order, ports wired to transport, health, metrics, logs, signals.

The only place where the decision tower and the wire tower meet. Only ``cli`` imports it.
"""
