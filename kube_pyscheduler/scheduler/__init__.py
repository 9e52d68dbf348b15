"""Orchestration: pop, decide, assume, bind, fail, over abstract ports.

No HTTP may be seen here. The daemon, tools and tests provide the ports.
"""
