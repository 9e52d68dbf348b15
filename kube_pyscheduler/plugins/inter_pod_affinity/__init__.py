"""InterPodAffinity: pods that want to be near others, or far from them, and what pods that are there already want.

It counts who has which term; who matches a term is counted in ``columns``. Only ``plugins`` imports it.
"""
