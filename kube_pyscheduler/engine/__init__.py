"""Pure scheduling: functions over a snapshot, without I/O, clock or randomness of their own.

The engine knows no plugin by name. ``scheduler``, tools and tests call it.
"""
