"""Bugs that people reported about schedulers, as small inputs with the right outcome; named by case number."""
