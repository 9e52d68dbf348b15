"""The live truth: nodes, pods with assumed ones, and the objects plugins look up.

No I/O and no decision may live here. ``scheduler`` and above drive it.
"""
