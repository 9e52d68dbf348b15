"""One module a subcommand; only argument parsing lives here.

Nothing imports this package.
"""
