"""A kube-scheduler replacement daemon: it decides as kube-scheduler v1.36 and scores every node."""
