"""The end of a run: what is kept, what is evaluated, and what the user is told."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from raceway.algos.rollout import Weights
from raceway.errors import RunFolderError, UserError
from raceway.graph import Loss, Outcome
from raceway.messages import first_line
from raceway.report.metrics import EVALUATION, read_rows
from raceway.training.checkpoints import Checkpoints
from raceway.training.evaluation import Evaluation, evaluation_row
from raceway.training.evaluation_log import append_evaluation, read_evaluations
from raceway.training.outcome import Run, write_outcome
from raceway.training.policy_files import Best
from raceway.training.programs import Report, Training, evaluated
from raceway.training.ready_callbacks import curricula
from raceway.training.reporter import Reporter
from raceway.training.setup import Setup


@dataclass
class Ending:
    """Brings a run to its end, whichever way it ends."""

    setup: Setup
    report: Report
    training: Training
    lost: str = ""
    """Why the evaluator was left out; empty if it was not."""

    def tell_loss(self, loss: Loss) -> None:
        """The evaluator is lost: training goes on without it, or until it is back."""
        if self.report.rescue.look():
            return  # the run's folder is gone: that is what the user should hear
        why = first_line(loss.why)
        if loss.is_final:
            self.lost = why
            stays = [each.place for each in curricula(self.training.director.callbacks) if each.by == "evaluation"]
            more = f". The curriculum, which advances by evaluations, stays at {stays[0]}" if stays else ""
            self.report.console.trouble(f"the evaluator is left out: {why}{more}")
        else:
            self.report.console.trouble(f"the evaluator is started again, with all evaluations so far: {why}")

    def keep_what_there_is(self, error: BaseException, has_callbacks: bool) -> None:
        """However a run ends, what was learnt so far is not lost."""
        setup, report = self.setup, self.report
        weights = self.training.learner.current
        why = {KeyboardInterrupt: "Interrupted", SystemExit: "Terminated (SIGTERM)"}.get(
            type(error), "Stopped by an error"
        )
        if weights.version == 0:
            report.console.finish(f"{why} before the first update.")
            return
        lines = {"stopped": f"{why} after {weights.version * setup.steps_per_round:,} steps"}
        folder = report.folder
        try:
            folder = report.rescue.folder
            report.rescue.save_logs()
            file = setup.policy_file(folder.final)
            if file.version != weights.version:
                file.write(weights)
            lines["policy"] = str(file.directory)
            if setup.evaluates and folder is report.folder:
                self._log_late_evaluations(self._best(), weights.version * setup.steps_per_round)
        except (OSError, UserError) as trouble:
            lines["policy"] = f"it could not be written: {trouble}"
        with suppress(OSError, UserError):  # the error that ended the run is the one to tell
            if Checkpoints(folder.checkpoints, keep=1).are_there:
                lines["go on"] = setup.how_to("resume", folder.path, has_callbacks=has_callbacks)
        report.console.finish(lines)

    def finish(self, outcome: Outcome) -> Run:
        """Evaluates the final policy, and keeps it."""
        setup, report, training = self.setup, self.report, self.training
        weights = training.learner.current
        steps = outcome.rounds * setup.steps_per_round
        seconds = outcome.seconds + (training.reporter.earlier_s if training.reporter is not None else 0.0)
        best = self._best()
        final = setup.policy_file(report.folder.final, report.rescue.known)
        final.write(weights)
        last, why_not = self._evaluated(weights) if setup.evaluates else (None, "")
        if setup.evaluates:
            self._log_late_evaluations(best, steps if last is None else steps - 1)
        if last is not None:
            best.offer(weights, last)
            with suppress(OSError, UserError):  # the metrics have it
                append_evaluation(report.folder.evaluations, steps, evaluation_row(last))
            report.log.write(steps, {"time/seconds": seconds, **evaluation_row(last)})
            final.write(weights, last)
        for trouble in report.log.troubles:
            report.console.note(trouble)
        run = Run(
            directory=report.folder.path,
            config=setup.config,
            steps=steps,
            seconds=seconds,
            evaluation=last,
            best_return=best.score,
            digest=training.learner.digest,
            summary=training.program.summary(),
            stopped=training.director.control.stop_reason if outcome.rounds < setup.rounds else "",
            env_args=weights.env_args or None,
        )
        write_outcome(report.folder, run)
        lines = farewell(setup, run, f"{run.steps:,} steps", training.reporter)
        lines |= {"evaluator": f"left out: {self.lost}"} if self.lost else {}
        lines |= {"evaluated": f"not at the end: {why_not}"} if why_not else {}
        report.console.finish(lines)
        return run

    def _best(self) -> Best:
        return Best(self.setup.policy_file(self.report.folder.best, self.report.rescue.known))

    def _log_late_evaluations(self, best: Best, until: int) -> None:
        """Writes the metrics of evaluations, up to so many steps of training, that the reporter has not heard of.

        The evaluator may finish one after the last round. And it keeps the best policy before it logs the evaluation,
        so that a policy may be there that a run, killed and resumed, passes over the second time.
        """
        folder = self.report.folder
        try:
            logged = read_evaluations(folder.evaluations)
            known = {row["step"] for row in read_rows(folder.metrics) if EVALUATION in row}
        except RunFolderError as error:
            self.report.console.trouble(str(error))
            return
        kept = best.evaluation
        for steps in sorted((kept.keys() | logged.keys()) - known):
            if steps <= until:
                self.report.log.write(steps, logged.get(steps) or kept[steps])
        for steps in kept.keys() - logged.keys():
            if steps <= until:
                with suppress(OSError, UserError):  # the metrics have it
                    append_evaluation(folder.evaluations, steps, kept[steps])

    def _evaluated(self, weights: Weights) -> tuple[Evaluation | None, str]:
        """Evaluates the final policy; else says why it could not be: that is no reason to lose the run."""
        setup = self.setup
        self.report.console.note(f"evaluating the final policy over {setup.trial.episodes} episodes")
        try:
            return evaluated(setup, self.training.layout, weights, setup.trial, setup.config.seed), ""
        except Exception as error:
            return None, first_line(f"{type(error).__name__}: {error}")


def farewell(setup: Setup, run: Run, steps: str, reporter: Reporter | None = None) -> dict[str, str]:
    """What to say at the end: what was reached, how fast, and what to do with it."""
    lines = {"trained": f"{steps} in {run.seconds:.1f} s ({run.steps_per_second:,.0f} a second)"}
    if reporter is not None and (reporter.env_faults or reporter.worker_faults):
        lines["faults"] = (
            f"environments were made anew {reporter.env_faults} times, workers started again {reporter.worker_faults} "
            "times"
        )
    if run.stopped:
        lines["finished"] = f"before {run.config.total_steps:,} steps: {run.stopped}"
    if run.result:
        lines["evaluated"] = run.result
        if run.best_return is not None and run.evaluation is not None and run.best_return > run.evaluation.mean:
            lines["best"] = f"{run.best_return:.1f}, kept"
    if setup.draws:
        lines["watch"] = setup.how_to("play", run.directory, env_args=run.env_args)
    else:
        lines["measure"] = setup.how_to("eval", run.directory, env_args=run.env_args)
    return lines
