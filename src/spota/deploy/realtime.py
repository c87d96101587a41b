"""A loop that nothing of our own disturbs: no garbage collection and, if asked for and granted, real-time priority."""

import contextlib
import ctypes
import gc
import os
from collections.abc import Iterator

PRIORITY = 50
"""Of SCHED_FIFO, as in ros2_control."""
CURRENT_AND_FUTURE = 3
"""What mlockall locks."""


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Without garbage collection; what exists already is never looked at again."""
    gc.collect()
    gc.freeze()
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was:
            gc.enable()


@contextlib.contextmanager
def realtime(wanted: bool) -> Iterator[list[str]]:
    """Ask for SCHED_FIFO and locked memory; gives what was refused, in words."""
    refused: list[str] = []
    if not wanted:
        yield refused
        return
    if not hasattr(os, "sched_setscheduler"):
        yield ["SCHED_FIFO and locked memory exist on Linux only; the loop runs at ordinary priority"]
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError as error:
        refused.append(f"SCHED_FIFO was refused ({error.strerror}); try as root, or with rtprio in limits.conf")
    if ctypes.CDLL(None, use_errno=True).mlockall(CURRENT_AND_FUTURE) != 0:
        refused.append(f"locked memory was refused ({os.strerror(ctypes.get_errno())}); raise ulimit -l")
    try:
        yield refused
    finally:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, *before)
        ctypes.CDLL(None).munlockall()
