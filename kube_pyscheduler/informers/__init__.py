"""List and watch: reflector, store, ordered fan-out of (old, new).

Nothing here may know what scheduling is. The daemon wires informers to handlers.
"""
