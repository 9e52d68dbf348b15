"""VolumeZone: nodes must be in the zones and regions that the labels of bound volumes name."""
