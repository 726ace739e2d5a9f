"""TaskWeb: whether the distance predicts transfers between text tasks that other people measured.

Kim, Asai, Ilharco and Hajishirzi (EMNLP 2023) trained nine model settings on 22 source tasks, then on 21 targets, with
eight seeds: 441 ordered pairs, 31,752 runs. ``python -m experiments.studies.taskweb`` embeds texts of the tasks, ranks
the sources of each target by every method, and compares with those scores. Read ``tasks.py`` for what a point is,
``features.py`` for what stands for it, ``measures.py`` for the methods and ``statistics.py`` for what was to be
computed, which was written before the first run.
"""
