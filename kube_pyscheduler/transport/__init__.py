"""Bytes to and from an API server: credentials, requests, the HTTP client, errors.

Nothing here may know what scheduling is. Informers, leader election, the recorder and the daemon import it.
"""
