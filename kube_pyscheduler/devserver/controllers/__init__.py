"""The controllers and the kubelets of a cluster, in-process, on the devserver's store.

No HTTP and no scheduling may live here. Only the devserver's app, the CLI and tests use it, through ``controllers``.
"""
