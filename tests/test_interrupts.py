"""Signals as exceptions, and moments in which they wait."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from raceway.interrupts import ending_on_sigterm, keeping_ctrl_c, raise_lost_ctrl_c, uninterrupted


@pytest.fixture(autouse=True)
def usual_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_sigterm_raises_within_the_block_and_is_as_before_after_it() -> None:
    with pytest.raises(SystemExit) as ended, ending_on_sigterm():
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_sigterm_that_somebody_listens_to_is_theirs() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    with ending_on_sigterm():
        signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_signals_wait_for_the_end_of_the_block(number: signal.Signals, error: type[BaseException]) -> None:
    done = []

    def act() -> None:
        with ending_on_sigterm(), uninterrupted():
            signal.raise_signal(number)
            signal.raise_signal(number)
            done.append("all of it")

    with pytest.raises(error):
        act()
    assert done == ["all of it"]
    with pytest.raises(error), ending_on_sigterm():
        signal.raise_signal(number)


def test_within_the_block_no_sigterm_can_be_taken_for_an_exit_of_code_that_is_called() -> None:
    def act() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except (Exception, SystemExit):
            raise AssertionError("as an environment's own") from None

    with pytest.raises(SystemExit), ending_on_sigterm():
        act()


def test_an_error_in_the_block_is_not_lost_by_a_signal() -> None:
    def act() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            raise OSError("the first")

    with pytest.raises(KeyboardInterrupt) as raised:
        act()
    assert isinstance(raised.value.__context__, OSError)


class Drops:
    """Has Ctrl-C pressed where Python drops what is raised."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_that_python_has_dropped_ends_the_block() -> None:
    reached = []

    def act(asks: bool) -> None:
        with keeping_ctrl_c():
            Drops()
            if asks:
                raise_lost_ctrl_c()
            reached.append(asks)

    with pytest.raises(KeyboardInterrupt):
        act(asks=False)
    with pytest.raises(KeyboardInterrupt):
        act(asks=True)
    assert reached == [False]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_that_became_another_error_is_ctrl_c() -> None:
    def act() -> None:
        with keeping_ctrl_c():
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("a module is half made") from None

    with pytest.raises(KeyboardInterrupt):
        act()
    with pytest.raises(ImportError), keeping_ctrl_c():
        raise ImportError("a module is half made")


def test_a_handler_of_somebody_elses_decides_what_ctrl_c_means() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    with keeping_ctrl_c():
        signal.raise_signal(signal.SIGINT)
        raise_lost_ctrl_c()
    assert heard == [signal.SIGINT]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_blocks_within_blocks_lose_none_either() -> None:
    def act() -> None:
        with keeping_ctrl_c(), keeping_ctrl_c():
            Drops()

    with pytest.raises(KeyboardInterrupt):
        act()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_ctrl_c_the_block_is_as_any_other() -> None:
    with keeping_ctrl_c():
        raise_lost_ctrl_c()
    raise_lost_ctrl_c()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_have_neither() -> None:
    done = []

    def act() -> None:
        with ending_on_sigterm(), uninterrupted(), keeping_ctrl_c():
            done.append(os.getpid())

    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    assert len(done) == 1
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_handlers_are_put_back_leaves_none_of_them_replaced(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    class HeardError(Exception):
        pass

    def raises(number: int, frame: Any) -> None:
        raise HeardError

    def set_and_signal(which: int, handler: Any) -> Any:
        before = original(which, handler)
        if which == number and handler is raises:
            signal.raise_signal(which)
        return before

    original = signal.signal
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, raises)

    def act() -> None:
        with uninterrupted():
            monkeypatch.setattr(signal, "signal", set_and_signal)

    with pytest.raises(HeardError):
        act()
    assert signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGTERM) is raises
