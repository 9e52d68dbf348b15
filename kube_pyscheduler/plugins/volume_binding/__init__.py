"""VolumeBinding: a pod's claims get their volumes together with the pod's node."""
