"""NodeVolumeLimits: a node takes so many volumes of a CSI driver, and no more."""
