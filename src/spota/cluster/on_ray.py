"""Ray as the engine: a cluster on this machine, one that runs elsewhere, or the one that this process uses already.

A cluster is one trust zone: functions and platforms travel pickled, and whoever can reach its ports can run code on it.
"""

import contextlib
import logging
import os
import pickle
import socket
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from spota.cluster.address import Address
from spota.cluster.engine import Failed, Handle, Lost, Outcome, Said
from spota.cluster.luggage import packed_for
from spota.cluster.machine import Machine, differences, refusal, this_machine
from spota.cluster.worker import Shared, work
from spota.sim.memory import in_units

MEMORY = 1e9
"""Bytes that a worker needs, about: jax, its programs and a small platform."""
STORE = 100_000_000
"""Bytes of a local cluster's object store; what travels is small."""
PATIENCE = 60.0
"""Seconds that a machine of a cluster has to say who it is."""
KNOCK = 5.0
"""Seconds to wait for an answer at a port."""
TOKEN = "If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as on its machines."
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}
"""Nobody hears of our use of Ray, and Ray prints nothing where a command prints its document: we tell of losses."""
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""A cluster of this machine only; else its ports are open on every network that the machine has."""


@contextlib.contextmanager
def connected(address: Address, cores: int = 1) -> Iterator["RayEngine"]:
    """The engine; a cluster of our own ends with it."""
    ray = _installed(address)
    ours = not ray.is_initialized()
    if ours:
        _start(ray, address, cores)
    try:
        yield RayEngine(ray, address, cores)
    finally:
        if ours:
            ray.shutdown()


class RayEngine:
    """Tasks of Ray, which it does not repeat by itself: whoever waits for one hears of every loss."""

    def __init__(self, ray: Any, address: Address, cores: int):
        """Look at the cluster, and refuse one that cannot work for us."""
        self._ray, self._elsewhere = ray, not address.is_local
        nodes = [node for node in ray.nodes() if node["Alive"]]
        self.workers = _room(nodes, cores)
        self.machines = self._introduced(nodes) if len(nodes) > 1 or self._elsewhere else [this_machine()]
        self._task = ray.remote(max_retries=0)(_work)
        self._ear = ray.remote(num_cpus=0, max_restarts=-1)(_Ear).remote()
        self._asked: Any = None

    def share(self, function: Any, common: Any) -> Any:
        """Pickle it once, with the code that it needs."""
        content = self._pickled((function, common))
        luggage = packed_for(content, self._elsewhere)
        return self._ray.put(Shared(content, luggage, this_machine().versions))

    def submit(self, name: str, shared: Any, own: Any, cores: int) -> Handle:
        """One task; what is its own travels with it."""
        options = {"num_cpus": cores, "memory": int(MEMORY), "name": name}
        return self._task.options(**options).remote(shared, self._pickled(own), cores, name, self._ear)

    def wait(self, handles: Sequence[Handle], seconds: float) -> list[tuple[Handle, Outcome]]:
        """Those that have ended."""
        ended, _ = self._ray.wait(list(handles), num_returns=1, timeout=seconds)
        if ended:
            ended, _ = self._ray.wait(list(handles), num_returns=len(handles), timeout=0)
        return [(handle, self._outcome(handle)) for handle in ended]

    def heard(self) -> list[Said]:
        """What has come since the last question was answered; an ear that was lost with its machine grows again."""
        if self._asked is None:
            self._asked = self._ear.said.remote()
        ready, _ = self._ray.wait([self._asked], timeout=0)
        if not ready:
            return []
        asked, self._asked = self._asked, None
        with contextlib.suppress(self._ray.exceptions.RayError):
            return self._ray.get(asked)
        return []

    def cancel(self, handles: Sequence[Handle]) -> None:
        """End them at once, wherever they are."""
        for handle in handles:
            with contextlib.suppress(Exception):  # whatever is in the way: nobody waits for it
                self._ray.cancel(handle, force=True)

    def _outcome(self, handle: Handle) -> Outcome:
        errors = self._ray.exceptions
        lost = (
            errors.WorkerCrashedError, errors.NodeDiedError, errors.LocalRayletDiedError, errors.OutOfMemoryError,
            errors.ObjectLostError, errors.TaskUnschedulableError,
        )  # fmt: skip
        try:
            return self._ray.get(handle)
        except lost as error:
            return Lost(_why(error, errors))
        except errors.RayError as error:
            return Failed(f"Ray could not run a task: {_first_sentence(error)}", "")

    def _introduced(self, nodes: list[dict[str, Any]]) -> list[Machine]:
        """Every machine says who it is; one with other versions is refused."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        ask = self._ray.remote(max_retries=2, num_cpus=0)(_who)
        places = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
        asked = [ask.options(scheduling_strategy=place).remote() for place in places]
        try:
            machines: list[Machine] = self._ray.get(asked, timeout=PATIENCE)
        except self._ray.exceptions.RayError as error:
            raise ValueError(
                f"A machine of the cluster cannot say who it is: {_first_sentence(error)} Install spota, with the same "
                "versions, on all of them."
            ) from error
        for machine in machines:
            different = differences(this_machine().versions, machine.versions)
            if different:
                raise ValueError(refusal(machine.host, different))
        return machines

    def _pickled(self, what: Any) -> bytes:
        from ray import cloudpickle

        try:
            return cloudpickle.dumps(what)  # type: ignore[reportPrivateImportUsage]
        except (TypeError, AttributeError, ValueError, pickle.PicklingError) as error:
            raise ValueError(f"Something cannot be sent to workers: {error}. Build it where it is used.") from error


class _Ear:
    """A small process that hears what workers say, until someone asks."""

    def __init__(self):
        self._said: list[Said] = []

    def hear(self, name: str, said: dict[str, Any]) -> None:
        self._said.append((name, said))

    def said(self) -> list[Said]:
        said, self._said = self._said, []
        return said


def _who() -> Machine:
    return this_machine()


def _work(shared: Shared, own: bytes, cores: int, name: str, ear: Any) -> Outcome:
    return work(shared, own, cores, lambda said: ear.hear.remote(name, said))


def _installed(address: Address) -> Any:
    """Ray, which reads its environment when it is imported."""
    for name, value in {**QUIET, **(LOOPBACK if address.is_local else {})}.items():
        if "ray" not in sys.modules:
            os.environ.setdefault(name, value)
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise ValueError("--on ray needs Ray; install it with: pip install 'spota[ray]'") from error
    return ray


def _start(ray: Any, address: Address, cores: int) -> None:
    """Begin a cluster on this machine, which nobody else can reach, or become a client of another."""
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address.is_local:
            here = {"include_dashboard": False, "_node_ip_address": "127.0.0.1", "object_store_memory": STORE}
            ray.init(address="local", num_cpus=_cores_here(address, cores), **here, **quiet)
        else:
            _knock(address)
            with warnings.catch_warnings(action="ignore"):  # what they say is in the error, too
                ray.init(address=str(address), **quiet)
    except (ConnectionError, RuntimeError, TimeoutError) as error:
        hint = "" if address.is_local else f" {TOKEN}"
        raise ValueError(f"--on {address}: the cluster refuses us: {_first_sentence(error)}{hint}") from error


def _cores_here(address: Address, cores: int) -> int:
    if address.workers is not None:
        return address.workers * cores
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _knock(address: Address) -> None:
    """Ray tries for half a minute; a port where nobody listens is told at once."""
    try:
        socket.create_connection((address.host, address.port), timeout=KNOCK).close()
    except OSError as error:
        raise ValueError(
            f"--on {address}: nobody answers there ({error.strerror or error}). Is the cluster up, and is "
            f"{address.port} the port for clients of its head?"
        ) from error


def _room(nodes: list[dict[str, Any]], cores: int) -> int:
    """How many workers there can be at once; none is an error."""
    there = [(node["Resources"].get("CPU", 0), node["Resources"].get("memory", 0)) for node in nodes]
    room = sum(min(int(cpus // cores), int(memory // MEMORY)) for cpus, memory in there)
    if room == 0:
        words = ", ".join(f"{cpus:g} cores and {in_units(float(memory))}" for cpus, memory in there)
        raise ValueError(
            f"No machine of the cluster has room for a worker, which needs {cores} core{'s' if cores > 1 else ''} and "
            f"{in_units(MEMORY)}: there are {words}."
        )
    return room


def _why(error: Exception, errors: Any) -> str:
    """A loss in a few words."""
    kinds = {
        errors.OutOfMemoryError: "its machine ran out of memory, and it was killed",
        errors.NodeDiedError: "its machine was lost",
        errors.LocalRayletDiedError: "its machine was lost",
        errors.WorkerCrashedError: "its process died",
        errors.ObjectLostError: "what it had found was lost with its machine",
    }
    return next((words for kind, words in kinds.items() if isinstance(error, kind)), _first_sentence(error))


def _first_sentence(error: Exception) -> str:
    """What it says before it goes into detail."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
    return (said or type(error).__name__).rstrip(".:") + "."
