"""What to do for speed, in plain words."""

from __future__ import annotations

from raceway.envs.checking.findings import CheckReport, EnvSpeed, LaneSpeed
from raceway.report.words import clock, number, percent

_CHEAP_S = 50e-6


def advise(report: CheckReport, *, is_native: bool) -> tuple[str, ...]:
    """One or two sentences for each thing that could be done, the most useful first."""
    speed = report.speed
    if speed is None:
        return ()
    lanes = {lane.name: lane for lane in report.lanes}
    of_lanes = (
        [_disturbed(report)] if report.is_disturbed else [*_lanes(lanes, speed, report.cpus), _uneven(lanes, speed)]
    )
    if is_native:
        found = [_native(lanes), _disturbed(report) if report.is_disturbed else ""]
    else:
        found = [*of_lanes, _in_cpp(speed), _waits(speed, report.cpus), _resets(speed), _wrappers(speed)]
    return tuple(each for each in (*found, _long(report, speed)) if each)


def _disturbed(report: CheckReport) -> str:
    return (
        f"While lanes were timed, only {percent(report.free_cpus)} of {report.cpus} CPUs were to be had: other "
        "programs were at work. Check again when it is quiet."
    )


def _native(lanes: dict[str, LaneSpeed]) -> str:
    native, process = lanes.get("native"), lanes.get("process")
    if native is None:
        return ""
    if process is None:
        return "It is native: raceway.make and raceway.train run it in the native lane."
    times = number(native.steps_per_second / process.steps_per_second)
    return f"It is native: raceway.make and raceway.train take the native lane, {times} times as fast as processes."


def _lanes(lanes: dict[str, LaneSpeed], speed: EnvSpeed, cpus: int) -> list[str]:
    inline, process = lanes.get("inline"), lanes.get("process")
    if inline is None or process is None or cpus < 2:
        return []
    gain = process.steps_per_second / inline.steps_per_second
    takes = f"A step takes {duration(speed.step_s)}"
    if gain < 1.1:
        least = _break_even(inline, process, speed)
        below = f" below about {duration(least)} a step" if least is not None and least > speed.step_s else ""
        return [f"{takes}: processes cost more than they bring{below}. Use lane='inline'."]
    if process.of_limit >= 0.8:
        return [f"{takes}: processes keep {percent(process.of_limit)} of {cpus} CPUs at it. The process lane is right."]
    return [
        f"{takes}: processes make it {number(gain)} times as fast as one, and handing over takes the rest. More "
        "environments for each worker may help (num_envs)."
    ]


def _break_even(inline: LaneSpeed, process: LaneSpeed, speed: EnvSpeed) -> float | None:
    """What a step must take for processes to be as fast as this one alone, if handing over costs what it did here.

    n / (c + p) = 1 / (c + q) with what n workers (p) and this process (q) add to a step's c seconds.
    """
    workers = max(process.num_workers, 1)
    bare = 1.0 / speed.steps_per_second
    added, alone = workers / process.steps_per_second - bare, 1.0 / inline.steps_per_second - bare
    return (added - workers * alone) / (workers - 1) if workers > 1 else None


def _in_cpp(speed: EnvSpeed) -> str:
    if speed.step_s >= _CHEAP_S or speed.cpu_share < 0.5:
        return ""
    return (
        "Python itself takes most of so short a step: in C++ it would be many times as fast. "
        "raceway new native-env NAME writes a template."
    )


def _waits(speed: EnvSpeed, cpus: int) -> str:
    if speed.cpu_share >= 0.5 or speed.step_s < 1e-4:
        return ""
    workers = min(int(cpus / max(speed.cpu_share, 0.05)), 32 * cpus)
    return (
        f"It computes only {percent(speed.cpu_share)} of the time and waits for the rest: more workers than CPUs "
        f"help, such as num_workers={workers} for as many environments."
    )


def _resets(speed: EnvSpeed) -> str:
    if speed.reset_share < 0.3:
        return ""
    return f"Resets take {percent(speed.reset_share)} of the time: make them cheaper, or episodes longer."


def _wrappers(speed: EnvSpeed) -> str:
    if speed.wrapper_share < 0.25:
        return ""
    names = ", ".join(speed.wrappers)
    less = (
        " gymnasium.make(..., disable_env_checker=True, order_enforce=False) leaves out wrappers that only check."
        if "PassiveEnvChecker" in speed.wrappers or "OrderEnforcing" in speed.wrappers
        else ""
    )
    return f"Wrappers ({names}) take {percent(speed.wrapper_share)} of a step.{less}"


def _uneven(lanes: dict[str, LaneSpeed], speed: EnvSpeed) -> str:
    sync, free = lanes.get("process"), lanes.get("process async")
    if sync is None or free is None or speed.slowest_s < 2 * speed.step_s:
        return ""
    if free.steps_per_second < 1.15 * sync.steps_per_second:
        return ""
    times = number(free.steps_per_second / sync.steps_per_second)
    return (
        f"Steps take unequally long (one in a hundred {duration(speed.slowest_s)}): serving those first that are ready "
        f"(batch_size, send and recv) is {times} times as fast."
    )


def _long(report: CheckReport, speed: EnvSpeed) -> str:
    best = max((lane.steps_per_second for lane in report.lanes), default=speed.steps_per_second)
    if best >= 1e6 / 86400:
        return ""
    return (
        f"A million steps take {clock(1e6 / best)} at {number(best)} steps a second: a faster step is what would help."
    )


def duration(seconds: float) -> str:
    """`6.2 µs`, `1.3 ms`, `2 s`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
