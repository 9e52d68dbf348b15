"""NodeResourcesFit and NodeResourcesBalancedAllocation: what a pod asks for, against what nodes have left."""
