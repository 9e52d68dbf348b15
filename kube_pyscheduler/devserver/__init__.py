"""An in-memory Kubernetes API server on a real socket, for demos, tests and benchmarks.

It knows nothing of the scheduler, uses only ``objects`` and ``kit``, and only ``cli``, ``demo`` and tests use it.
"""
