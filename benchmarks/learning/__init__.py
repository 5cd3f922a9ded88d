"""Learning studies: tasks x settings x seeds, trained in the background, kept as small data files.

`python -m benchmarks.learning` is the command; `studies.py` lists what is studied. Nothing here imports Raceway: the
learners it is compared with run in virtual environments of their own.
"""
