"""Does the distance help to choose a source? Every base is another dataset: 21 of pictures, 35 of texts.

``DESIGN.md`` beside this file was committed before anything was measured. The steps of
``python -m experiments.studies.choosing`` are prepare, train (minutes of one GPU), measure and report.
"""
