"""Slow environments in processes: each has a share of the machines, and nobody notices which.

How many there are is decided by what a step costs, unless someone says it. They are new interpreters, never forks: jax
has threads, which a fork would leave behind in the middle of what they do. They do not import the main script again
either.
"""

import contextlib
import importlib
import itertools
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Float

from spota.envs.gymnasium_machines import Flags, Loop, Reward
from spota.envs.gymnasium_recipe import Recipe, Xi
from spota.sim.devices import usable_cores
from spota.sim.domain import DomainDistribution
from spota.sim.host import MachineError
from spota.sim.objects import PREFIX
from spota.sim.watchdog import watching

PATIENCE = 120.0
"""Seconds that a process may take to start."""
TURN = np.dtype([("machine", np.int64), ("count", np.int64)])
"""What a process tells all the time, without a message: whose turn it is, and how many turns there were."""
CODE = "from spota.envs.gymnasium_processes import work; work()"


PAYS = 1e-3
"""Seconds of a step from which on a process is worth its messages."""
TRIED = 0.2
"""Seconds in which that is measured, about."""


def processes_that_pay(recipe: Recipe, domain: DomainDistribution, time_limit: float) -> int:
    """As many as there are cores if a step is slow, and one otherwise, or if the environment cannot travel."""
    with watching(time_limit, lambda error: f"{recipe.name} broke on its nominal domain: {error}."):
        slow = usable_cores() > 1 and _step_seconds(recipe, domain) > PAYS
    if not slow:
        return 1
    try:
        _pickled(recipe)
    except Exception:  # whatever its parts raise: a loop needs none of it
        return 1
    return usable_cores()


def _step_seconds(recipe: Recipe, domain: DomainDistribution) -> float:
    """Of one step of one environment, on the nominal domain, with one random action; the shortest of several."""
    xi = {name: float(column[0]) for name, column in domain.nominal(1).items()}
    env, times = recipe.make(xi), []
    try:
        recipe.begin(env, xi, 0)
        action = env.action_space.sample()
        until = time.perf_counter() + TRIED
        while len(times) < 2 or (min(times) > PAYS / 4 and time.perf_counter() < until):
            begun = time.perf_counter()
            over = env.step(action)[2]
            times.append(time.perf_counter() - begun)
            if over:
                recipe.begin(env, xi, 0)
    except Exception:  # the machines will say it, with their domain
        return 0.0
    finally:
        env.close()
    return min(times)


class Crew:
    """Processes that run machines of one platform; they end with it, or after a fault."""

    def __init__(self, recipe: Recipe, processes: int, time_limit: float):
        """None is started yet."""
        self._recipe, self._size, self._limit = recipe, processes, time_limit
        self._workers: list[_Worker] = []
        self._numbers = itertools.count()
        weakref.finalize(self, _stop, self._workers)

    def open(self, domains: Sequence[Xi], seeds: Sequence[int]) -> "Together":
        """Machines in equal shares."""
        if not self._workers:
            self._workers.extend(_Worker(self._recipe, self._limit) for _ in range(self._size))
            with self.stopped_by_a_fault():
                for worker in self._workers:
                    worker.begun()
        return Together(self, next(self._numbers), self._workers, domains, seeds)

    @contextlib.contextmanager
    def stopped_by_a_fault(self):
        """After a fault nobody knows what the others are doing: all end, and the next batch has new ones."""
        try:
            yield
        except BaseException:
            _stop(self._workers)
            raise


class Together:
    """The machines of all processes as one batch."""

    def __init__(
        self, crew: Crew, number: int, workers: Sequence["_Worker"], domains: Sequence[Xi], seeds: Sequence[int]
    ):
        """Open each share."""
        self._crew, self._number = crew, number
        shares = [s for s in np.array_split(np.arange(len(seeds)), len(workers)) if s.size]
        self._shares = list(zip(list(workers), shares, strict=False))
        parts = [([domains[i] for i in share], [seeds[i] for i in share]) for _, share in self._shares]
        found = self._ask("open", parts)
        self._observation, self.diverged = np.concatenate(found[0], axis=1), np.concatenate(found[1])

    def observe(self) -> Float[np.ndarray, "d n"]:
        """The observations of all."""
        return self._observation

    def step(self, command: Float[np.ndarray, "a n"], active: Flags) -> tuple[Reward, Flags]:
        """All processes step at once."""
        seen, diverged, reward, failed = self._ask("step", [(command[:, s], active[s]) for _, s in self._shares])
        self._observation, self.diverged = np.concatenate(seen, axis=1), np.concatenate(diverged)
        return np.concatenate(reward), np.concatenate(failed)

    def close(self) -> None:
        """The processes stay, for other machines."""
        self._ask("close", [() for _ in self._shares])

    def _ask(self, what: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """One question to every process, and the answers by kind."""
        with self._crew.stopped_by_a_fault():
            for (worker, _), given in zip(self._shares, arguments, strict=True):
                worker.send((self._number, what, given))
            return list(zip(*[worker.answer(share) for worker, share in self._shares], strict=True))


class _Worker:
    """One process as its parent sees it."""

    def __init__(self, recipe: Recipe, time_limit: float):
        self._recipe, self._limit = recipe, time_limit
        ours, theirs = socket.socketpair()
        self._turns = tempfile.TemporaryFile()  # noqa: SIM115, it lives as long as the process
        self._turns.write(bytes(TURN.itemsize))
        self._turns.flush()
        handles = theirs.fileno(), self._turns.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-c", CODE, *map(str, handles)],
            pass_fds=handles,
            env=os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        theirs.close()
        self._connection = Connection(ours.detach())
        self._turn = _turn(self._turns)
        self._connection.send_bytes(_pickled(recipe))

    def begun(self) -> None:
        """Wait until it has imported what it needs."""
        if not self._connection.poll(PATIENCE):
            raise ValueError(f"A process for {self._recipe.name} did not start within {PATIENCE:g} s.")
        self._received(())

    def send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # it has ended, which its missing answer tells
            self._connection.send(message)

    def answer(self, share: Sequence[int] | np.ndarray) -> Any:
        """What it says of its share of the machines; one that has the turn for longer than the time limit hangs."""
        before = -1
        while not self._connection.poll(self._limit):
            machine, count = self._turn[0].tolist()
            if count == before:
                raise MachineError(
                    int(share[machine]),
                    f"it hangs, since a step takes longer than {self._limit:g} s; if it is only slow, write "
                    f"time_limit={10 * self._limit:g}",
                )
            before = count
        return self._received(share)

    def _received(self, share: Sequence[int] | np.ndarray) -> Any:
        try:
            machine, answer = self._connection.recv()
        except (EOFError, OSError) as error:
            what = f"the process that ran it ended with exit code {self._process.wait()}"
            if not len(share):
                raise ValueError(f"{self._recipe.name}: {what}.") from error
            raise MachineError(int(share[int(self._turn[0]["machine"])]), what) from error
        if isinstance(machine, int):
            raise MachineError(int(share[machine]), answer)
        return answer

    def stop(self) -> None:
        """End it at once: it may hang."""
        self._connection.close()
        self._process.kill()
        self._process.wait()
        self._turns.close()


def _stop(workers: list[_Worker]) -> None:
    while workers:
        workers.pop().stop()


def _turn(file: BinaryIO) -> np.ndarray:
    return np.frombuffer(mmap.mmap(file.fileno(), TURN.itemsize), TURN)


def _pickled(recipe: Recipe) -> bytes:
    """The recipe with the user's functions in it; those of a `file.py:name` travel whole."""
    pickle = importlib.import_module("cloudpickle")  # Gymnasium brings it
    for function in (recipe.source, recipe.apply):
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        if module is not None and module.__name__.startswith(PREFIX):
            pickle.register_pickle_by_value(module)
    return pickle.dumps(recipe)


def work() -> None:
    """What a process does: answer until the parent closes the connection."""
    connection, turns = Connection(int(sys.argv[1])), open(int(sys.argv[2]), "r+b")  # noqa: SIM115, PTH123
    turn = _turn(turns)
    loops, idle = {}, []
    recipe = importlib.import_module("pickle").loads(connection.recv_bytes())
    connection.send((None, None))

    def notice(machine: int) -> None:
        turn[0] = machine, turn[0]["count"] + 1

    with contextlib.suppress(EOFError):
        while True:
            number, what, given = connection.recv()
            try:
                connection.send((None, _done(loops, number, what, given, (recipe, idle, notice))))
            except (MachineError, ValueError) as error:
                connection.send((getattr(error, "machine", 0), str(error)))


def _done(loops: dict[int, Loop], number: int, what: str, given: tuple[Any, ...], making: tuple[Any, ...]) -> tuple:
    """The answer to one message."""
    if what == "close":
        loops.pop(number).close()
        return ()
    if what == "open":
        (domains, seeds), (recipe, idle, notice) = given, making
        loops[number] = Loop(recipe, domains, seeds, idle, notice)
        earned: tuple[np.ndarray, ...] = ()
    else:
        earned = loops[number].step(*given)
    return loops[number].observe(), loops[number].diverged, *earned
