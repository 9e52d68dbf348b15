"""The Table form of lists: the columns that ``kubectl get`` shows.

Only reading of objects may live here. The HTTP layer imports it.
"""
