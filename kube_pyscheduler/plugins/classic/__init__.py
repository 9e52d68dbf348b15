"""The policies of kube-scheduler 1.9 to 1.22 that no plugin of today serves; off unless a configuration names them.

What a plugin of today does just as well may not be here: ``config.policy`` maps old names to it. Only
``plugins/__init__.py`` imports this package.
"""
