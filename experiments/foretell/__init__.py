"""Does the number foretell transfer? Many sources, many targets, three families, and every method side by side.

``python -m experiments.foretell --size full --device cuda`` is meant for one large GPU, ``--size cores`` for two cores
of a processor. Read ``design.py`` for what is compared with what and ``statistics.py`` for what was to be computed,
both written before the first run.
"""
