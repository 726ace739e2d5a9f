"""The study of mixtures: are weights, intervals and verdicts of `sotdd.mix` right, and does training on them help.

``DESIGN.md`` beside this file was committed before it was run. ``python -m experiments.studies.mix`` does all steps.
"""
