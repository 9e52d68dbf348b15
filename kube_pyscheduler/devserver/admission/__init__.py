"""What happens to an object between a request and the store: defaults, admission, validation, by kind.

Nothing here may write to the store or know HTTP. Only the registry and ``event_views`` import it.
"""
