"""The in-tree plugins, one folder each; ``plugins/__init__.py`` holds the only list of them.

Plugins know nothing of each other; what two share moves down to ``columns``. Only wiring imports this package.
"""
