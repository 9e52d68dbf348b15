"""DynamicResources: devices for the claims of a pod, and for its extended resources that device classes back."""
