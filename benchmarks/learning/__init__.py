"""Learning studies: tasks x settings x seeds, trained in the background, kept as small data files.

`python -m benchmarks.learning` is the command; `studies.py` lists what is studied. `sb3_zoo.py`
runs in the virtual environment of peers, which has no Raceway.
"""
