"""VolumeRestrictions: disks that take one writer, and claims that take one pod."""
