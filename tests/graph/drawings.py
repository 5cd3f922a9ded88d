"""Drawings to try: the program of the design, the odd cases, and random ones."""

from __future__ import annotations

from hypothesis import strategies as st

from raceway.graph.draw import Arrow, Box, Drawing, Kind, Port, Reaction


def loop() -> Drawing:
    """Two reactors and the delay between them that is the schedule."""
    collector = Box(
        "collector",
        "Collector",
        inputs=(Port("weights", "Weights"),),
        outputs=(Port("rollout", "Rollout"),),
        reactions=(
            Reaction("open", ("startup",)),
            Reaction("collect", ("weights",), (), ("rollout",)),
            Reaction("close", ("shutdown",)),
        ),
    )
    learner = Box(
        "learner",
        "Learner",
        inputs=(Port("rollout", "Rollout"),),
        outputs=(Port("weights", "Weights"), Port("metrics", "Metrics")),
        reactions=(Reaction("learn", ("rollout",), (), ("weights", "metrics")),),
    )
    arrows = (
        Arrow("collector", "rollout", "learner", "rollout"),
        Arrow("learner", "weights", "collector", "weights", "after 2"),
    )
    return Drawing("ppo", (collector, learner), arrows)


def training() -> Drawing:
    """The training program of the design: all kinds of arrows, a timer, a place."""
    small = loop()
    reporter = Box(
        "reporter",
        "Reporter",
        inputs=(Port("metrics", "Metrics"), Port("scores", "Scores")),
        reactions=(Reaction("report", ("metrics",), ("scores",)), Reaction("flush", ("clock: every 10",))),
    )
    evaluator = Box(
        "evaluator",
        "Evaluator",
        place="1 process",
        inputs=(Port("weights", "Weights"),),
        outputs=(Port("episode", "Episode"),),
        reactions=(Reaction("evaluate", ("weights",), (), ("episode",)),),
    )
    recorder = Box(
        "recorder",
        "Recorder",
        place="1 process",
        inputs=(Port("episode", "Episode"),),
        reactions=(Reaction("record", ("episode",)),),
    )
    arrows = (
        Arrow("learner", "metrics", "reporter", "metrics"),
        Arrow("learner", "weights", "evaluator", "weights", "latest", "latest"),
        Arrow("evaluator", "episode", "recorder", "episode", "queue 8", "queue"),
    )
    return Drawing("training", (*small.boxes, reporter, evaluator, recorder), small.arrows + arrows)


def bank() -> Drawing:
    """Sixteen workers in processes, gathered by a learner that answers all of them."""
    workers = Box(
        "workers",
        "Worker",
        16,
        "2 processes",
        (Port("weights", "Array"),),
        (Port("rollout", "Array"),),
        (Reaction("collect", ("weights",), (), ("rollout",)),),
    )
    learner = Box(
        "learner",
        "Learner",
        inputs=(Port("rollouts", "Array"),),
        outputs=(Port("weights", "Array"),),
        reactions=(Reaction("learn", ("rollouts",), (), ("weights",)),),
    )
    arrows = (
        Arrow("workers", "rollout", "learner", "rollouts"),
        Arrow("learner", "weights", "workers", "weights", "after 2"),
    )
    return Drawing("bank", (workers, learner), arrows)


def chain() -> Drawing:
    """Eight reactors in a row."""
    boxes = [Box(f"stage_{i}", "Stage", inputs=(Port("x", "int"),), outputs=(Port("y", "int"),)) for i in range(8)]
    return Drawing("chain", tuple(boxes), tuple(Arrow(f"stage_{i}", "y", f"stage_{i + 1}", "x") for i in range(7)))


def odd() -> Drawing:
    """Nothing at all in a box, loops, very long names, characters that mean something to XML and Mermaid."""
    counter = Box(
        "counter",
        "Counter",
        inputs=(Port("n", "int"), Port("m")),
        outputs=(Port("n_next", "int"), Port("m_next")),
        reactions=(Reaction("count", ("clock: every 2",), ("n", "m"), ("n_next", "m_next")),),
    )
    long = Box(
        "a_reactor_whose_name_goes_on_and_on_and_on",
        "CollectorWithNormalisationAndRewardScaling",
        4,
        inputs=(Port("observations_clipped_and_normalised", "dict[str, tuple[Float32Array, Float32Array, ...]]"),),
        reactions=(Reaction("react_to_observations_as_they_come", ("observations_clipped_and_normalised",)),),
    )
    special = Box('<"|#;&>', "`_*]end", place="a & b", outputs=(Port("漢字", "list[str | None]"),))
    arrows = (
        Arrow("counter", "n_next", "counter", "n", "after 1"),
        Arrow("counter", "m_next", "counter", "m", "after 12"),
        Arrow('<"|#;&>', "漢字", "a_reactor_whose_name_goes_on_and_on_and_on", "observations_clipped_and_normalised"),
    )
    return Drawing('odd <ones> & "others"', (Box("empty", "Empty"), counter, long, special), arrows)


EXAMPLES = {"loop": loop(), "training": training(), "bank": bank(), "chain": chain(), "odd": odd()}


@st.composite
def drawings(draw: st.DrawFn) -> Drawing:
    """Up to nine boxes and 24 arrows, any of them: forward, back, to itself, many from one output or to one input."""
    words = st.text("abcmW_", min_size=0, max_size=14)
    timings: st.SearchStrategy[tuple[str, Kind]] = st.sampled_from(
        [("", "after"), ("after 2", "after"), ("queue 8", "queue"), ("latest", "latest")]
    )
    boxes = []
    for index in range(draw(st.integers(1, 9))):
        inputs = tuple(Port(f"in{i}", draw(words)) for i in range(draw(st.integers(0, 4))))
        outputs = tuple(Port(f"out{i}", draw(words)) for i in range(draw(st.integers(0, 3))))
        triggers = st.sampled_from([*(port.name for port in inputs), "startup", "shutdown", "clock: every 2"])
        effects = tuple(port.name for port in outputs if draw(st.booleans()))
        reactions = tuple(
            Reaction(f"r{i}{draw(words)}", (draw(triggers),), (draw(triggers),), effects)
            for i in range(draw(st.integers(0, 3)))
        )
        width, place = (
            draw(st.sampled_from([1, 1, 1, 4])),
            draw(st.sampled_from(["", "", "", "gpu 0", "2 processes on another machine"])),
        )
        boxes.append(Box(f"{draw(words)}{index}", draw(words), width, place, inputs, outputs, reactions))
    sources = [(box.name, port.name) for box in boxes for port in box.outputs]
    targets = [(box.name, port.name) for box in boxes for port in box.inputs]
    if not sources or not targets:
        return Drawing(draw(words), tuple(boxes))
    ends = st.tuples(st.sampled_from(sources), st.sampled_from(targets), timings)
    arrows = tuple(Arrow(*source, *target, *timing) for source, target, timing in draw(st.lists(ends, max_size=24)))
    return Drawing(draw(words), tuple(boxes), arrows)
