"""Verbs and options by argparse, with suggestions for names that are nearly right."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from typing import Any, NoReturn

import raceway
from raceway.cli import verbs as actions
from raceway.cli.options import take_env_arguments
from raceway.messages import quoted
from raceway.names import did_you_mean


class Parser(argparse.ArgumentParser):
    """Suggests a near name where one is unknown."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs, allow_abbrev=False)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Options that a verb does not know are its own error, which tells those it does."""
        rest, env_args = take_env_arguments(arguments)
        parsed, unknown = self.parse_known_args(rest)
        parsed.given_args = env_args
        if env_args and not getattr(parsed, "takes_env", False):
            unknown = [each for each in arguments if each.startswith("--env.")]
        if unknown:
            parser: Parser = parsed.parser
            options = [each for action in parser._actions for each in action.option_strings if each.startswith("--")]
            hint = did_you_mean(unknown[0].partition("=")[0], options)
            parser.error(f"unrecognized arguments: {' '.join(unknown)}.{hint}")
        return parsed

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if wrong:
            message += did_you_mean(wrong[1], re.findall(r"[\w-]+", wrong[2]))
        super().error(message)


def verbs() -> Parser:
    """The parser of everything but `train`, which is listed here for the help."""
    parser = Parser(prog="raceway", description=raceway.__doc__)
    parser.add_argument("--version", action="version", version=f"raceway {raceway.__version__}")
    parser.set_defaults(parser=parser)
    added = parser.add_subparsers(dest="verb", required=True, metavar="verb", parser_class=Parser)
    added.add_parser("train", help="train an agent: raceway train CartPole-v1", add_help=False)
    _add_resume(added)
    _add_eval(added)
    _add_play(added)
    _add_plot(added)
    _add_compare(added)
    _add_export(added)
    _add_new(added)
    _add_check(added)
    _add_list(added)
    _add_graph(added)
    _add_doctor(added)
    return parser


def _add(added: Any, name: str, about: str, run: Any) -> Parser:
    parser: Parser = added.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    parser.set_defaults(run=run, parser=parser)
    return parser


def _add_resume(added: Any) -> None:
    parser = _add(added, "resume", "go on with a run that was stopped or killed", actions.resume)
    parser.add_argument("folder", metavar="RUN", help="the folder of a run")
    parser.add_argument(
        "--anyway", action="store_true", help="even where versions, the CPU, code or arguments differ, and so the bits"
    )
    parser.add_argument("--total-steps", type=steps, metavar="N", help="train for this many steps in all")
    parser.add_argument(
        "--stop-at-return",
        type=return_or_none,
        default=argparse.SUPPRESS,
        metavar="R",
        help="stop at another training return, or at none",
    )
    parser.add_argument("--quiet", action="store_true", help="say nothing")
    _add_own_code(parser)


def _add_own_code(parser: Parser) -> None:
    """What may be given again because the folder of a run does not hold it."""
    parser.set_defaults(takes_env=True)
    parser.add_argument(
        "--env",
        metavar="ENV",
        help="an environment in place of the run's: a name, a Gymnasium id, package.module:callable or a .hpp file; "
        "--env.X VALUE sets its argument X",
    )
    parser.add_argument(
        "--network", metavar="NAME", help="the run's own network: package.module:attribute, an (init, apply) pair"
    )
    parser.add_argument("--trust", action="store_true", help="call the code that the folder names as its environment")


def steps(text: str) -> int:
    """A number of steps, as people write them: 1e6 too."""
    number = float(text)
    if not number.is_integer() or number < 1:
        raise ValueError
    return int(number)


def return_or_none(text: str) -> float | None:
    """A return to stop at, or None."""
    try:
        return None if text.lower() == "none" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor none") from None


def a_return(text: str) -> float:
    """A return to compare with: any number but NaN."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a number")
    return number


def _add_eval(added: Any) -> None:
    parser = _add(added, "eval", "measure a run's policy in fresh environments", actions.evaluate)
    parser.add_argument("folder", metavar="RUN", help="the folder of a run")
    parser.add_argument("--episodes", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="of the environments (default: 0)")
    parser.add_argument("--at-least", type=a_return, metavar="RETURN", help="exit with 1 if the mean is below this")
    parser.add_argument("--policy", choices=["best", "final"], help="which one (default: best, if there is one)")
    _add_own_code(parser)


def _add_play(added: Any) -> None:
    parser = _add(added, "play", "watch a policy: in a window, or as a video where there is no screen", actions.play)
    parser.add_argument("what", metavar="RUN", help="the folder of a run; with --agent random, an environment")
    parser.add_argument("--agent", choices=["policy", "random"], default="policy", help="who acts (default: policy)")
    parser.add_argument("--episodes", type=int, default=3, help="how many (default: 3)")
    parser.add_argument("--seed", type=int, default=0, help="of the environment (default: 0)")
    parser.add_argument("--policy", choices=["best", "final"], help="which one (default: best, if there is one)")
    parser.add_argument("--video", metavar="FILE", help="write an .mp4 file even if there is a screen")
    parser.add_argument(
        "--quality",
        choices=["auto", "full"],
        default="auto",
        help="auto: where OpenGL is computed by the CPU, MuJoCo tasks have coarser shadows and unsmoothed edges",
    )
    parser.add_argument("--quiet", action="store_true", help="do not say how far the video is")
    _add_own_code(parser)


def _add_export(added: Any) -> None:
    parser = _add(added, "export", "write a run's policy to a file for other programs", actions.export)
    parser.add_argument("folder", metavar="RUN", help="the folder of a run")
    parser.add_argument("--to", choices=["onnx", "safetensors"], default="onnx", help="the format (default: onnx)")
    parser.add_argument("--out", metavar="FILE", help="the file (default: policy.onnx, ..., in the run's folder)")
    parser.add_argument("--policy", choices=["best", "final"], help="which one (default: best, if there is one)")


def _add_plot(added: Any) -> None:
    parser = _add(added, "plot", "draw learning curves of runs over steps and seconds", actions.plot)
    _add_runs(parser)
    parser.add_argument(
        "--out", metavar="FILE", default=".", help="a .png, .svg or .pdf file, or a folder for both (default: here)"
    )
    parser.add_argument("--x", choices=["steps", "seconds", "both"], default="both", help="over what (default: both)")
    parser.add_argument(
        "--metric", default="episode/return", metavar="NAME", help="such as evaluation/return (default: episode/return)"
    )


def _add_compare(added: Any) -> None:
    parser = _add(added, "compare", "compare what runs reached and how fast", actions.compare)
    _add_runs(parser)
    parser.add_argument("--at", type=a_return, metavar="RETURN", help="and when training first reached this")
    parser.add_argument(
        "--sort", metavar="COLUMN", default="return", help="best first: evaluation, steps/s, ... (default: return)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print it for a page")
    form.add_argument("--json", action="store_true", help="print it for a program")


def _add_runs(parser: Parser) -> None:
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", help="a run's folder, a folder of runs or a pattern; LABEL=RUN names it"
    )


def _add_new(added: Any) -> None:
    parser = _add(added, "new", "write an environment of your own to begin with", actions.new)
    parser.add_argument("kind", choices=["env", "native-env"], help="in Python, or in C++ for the native lane")
    parser.add_argument("name", metavar="NAME", help="such as MyTask or my-task")


def _add_check(added: Any) -> None:
    parser = _add(added, "check", "check an environment for mistakes, and time it in each lane", actions.check)
    parser.add_argument(
        "env", metavar="ENV", help="a name, any Gymnasium id, package.module:callable, a .hpp file; --env.X sets its X"
    )
    parser.add_argument("--no-lanes", action="store_true", help="do not time the lanes, which is half of the time")
    parser.add_argument("--num-envs", type=int, metavar="N", help="environments of each lane (default: by their cost)")
    parser.add_argument("--num-workers", type=int, metavar="N", help="workers of each lane (default: the CPUs)")
    parser.add_argument("--timeout", type=float, default=30.0, metavar="S", help="when a call hangs (default: 30)")
    parser.add_argument("--strict", action="store_true", help="exit with 1 for what could be better, too")
    parser.add_argument("--json", action="store_true", help="print it for a program")


def _add_list(added: Any) -> None:
    parser = _add(added, "list", "list environments, algorithms or presets", actions.list_)
    parser.add_argument("what", choices=["envs", "algos", "presets"])


def _add_graph(added: Any) -> None:
    parser = _add(added, "graph", "print where the picture of a run's graph is", actions.graph)
    parser.add_argument("folder", metavar="RUN", help="the folder of a run")
    parser.add_argument("--mermaid", action="store_true", help="print it as Mermaid text instead")


def _add_doctor(added: Any) -> None:
    parser = _add(added, "doctor", "report what this machine has, and what is missing", actions.doctor)
    parser.add_argument("--directory", default="runs", help="where run folders shall go (default: runs)")
