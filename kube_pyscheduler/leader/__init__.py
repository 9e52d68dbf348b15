"""Leader election on Lease objects: pure rules on a record, and the loop that performs them.

Only monotonic time decides. The daemon runs it.
"""
