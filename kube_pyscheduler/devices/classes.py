"""Device classes by name, and by the extended resource that each of them offers.

Source: deviceclass/extendedresourcecache/extendedresourcecache.go in dynamic-resource-allocation. It keeps what events
left behind; here the map is made from the classes as they are, with the same rule where two offer one resource.
"""

from __future__ import annotations

from kube_pyscheduler.columns.resources import is_extended_resource
from kube_pyscheduler.framework.listers import Lister
from kube_pyscheduler.objects.resource import CLASS_PREFIX, DeviceClass


def is_device_resource(name: str) -> bool:
    """Whether devices may back a resource of this name. Source: IsDRAExtendedResourceName."""
    return is_extended_resource(name) or name.startswith(CLASS_PREFIX)


def is_offered(resource: str, classes: Lister[DeviceClass]) -> bool:
    """Whether a class offers the extended resource. O(classes) at most."""
    if resource.startswith(CLASS_PREFIX) and classes.get(resource.removeprefix(CLASS_PREFIX)) is not None:
        return True
    return any(device_class.spec.extended_resource_name == resource for device_class in classes)


class ExtendedResources:
    """Extended resources that are backed by devices. Make it anew when the classes have another generation."""

    def __init__(self, classes: Lister[DeviceClass]) -> None:
        self.generation = classes.generation
        self._classes: dict[str, DeviceClass] = {}
        for device_class in sorted(classes, key=lambda each: each.name, reverse=True):
            self._classes[CLASS_PREFIX + device_class.name] = device_class
            name = device_class.spec.extended_resource_name
            known = self._classes.get(name) if name is not None else None
            # The younger class has the name; of equally old ones the first by name, which comes last here.
            if name is not None and (known is None or _created(device_class) >= _created(known)):
                self._classes[name] = device_class

    def class_of(self, resource: str) -> DeviceClass | None:
        """The class that offers an extended resource."""
        return self._classes.get(resource)

    def __len__(self) -> int:
        return len(self._classes)


def _created(device_class: DeviceClass) -> str:
    return device_class.metadata.creation_timestamp
