"""The Kubernetes objects the scheduler reads: frozen structs with only the fields it uses.

No I/O and no scheduling rule may live here. Everybody above ``kit`` may import it.
"""
