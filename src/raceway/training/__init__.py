"""Training runs: settings, collectors, the learner, evaluation, and the folder that a run leaves behind."""
