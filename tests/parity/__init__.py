"""Cases with the verdicts of kube-scheduler v1.36, and the runner that compares ours with them."""
