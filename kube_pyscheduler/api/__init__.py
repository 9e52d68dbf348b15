"""What plugin authors import: the framework contracts, re-exported and kept stable.

Nothing is defined here.
"""
