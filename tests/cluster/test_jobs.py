"""Tasks until all are done, on an engine without Ray; and the small things around them."""

import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from in_process import InProcess

from spota.cluster import cores, luggage, worker
from spota.cluster.address import Address, parsed
from spota.cluster.connecting import engine_on, tasks_on
from spota.cluster.engine import Done, Failed
from spota.cluster.jobs import MOST_LOSSES, AtWork, Finished, TaskError, WorkerLost, results
from spota.cluster.machine import differences, refusal, this_machine
from spota.cluster.on_ray import _room
from spota.cluster.tasks import Tasks, cut
from spota.cluster.worker import Shared
from spota.sim import watchdog

JOBS = {"a": 1, "b": 2, "c": 3}


def double(common, own, say):
    say({"worker": "here/1"})
    if own == common:
        raise ValueError(f"{own} cannot be doubled.")
    return 2 * own


def work(engine, jobs, hear=lambda _: None, common=None):
    return results(engine, engine.share(double, common), jobs, 1, hear)


def test_what_is_lost_is_asked_for_again_and_told():
    news, engine = [], InProcess(lose=lambda name, attempt: name == "b" and attempt < 3)
    found = {name: done.value for name, done in work(engine, JOBS, news.append)}
    assert found == {"a": 2, "b": 4, "c": 6}
    assert [n.losses for n in news if isinstance(n, WorkerLost)] == [1, 2]
    assert {n.task: n.losses for n in news if isinstance(n, Finished)} == {"a": 0, "b": 2, "c": 0}
    last = [n for n in news if isinstance(n, AtWork)][-1]
    assert (last.finished, last.tasks, last.lost) == (3, 3, 2)
    assert "3 of 3 tasks finished" in str(last) and "2 lost" in str(last)
    assert engine.asked.count("b") == 3 and engine.asked.count("a") == 1


def test_a_task_that_kills_its_workers_ends_it():
    engine = InProcess(lose=lambda name, _: name == "b", first=-1)
    with pytest.raises(ValueError, match=f"b was lost with {MOST_LOSSES} workers.*its process died.*more memory"):
        list(work(engine, {"a": 1, "b": 2}))
    assert engine.cancelled == ["a"]


def test_a_task_that_raises_ends_it_and_what_came_before_was_given():
    engine, found = InProcess(), {}
    arriving = ((name, found.setdefault(name, done.value)) for name, done in work(engine, JOBS, common=2))
    with pytest.raises(TaskError, match="2 cannot be doubled") as raised:
        list(arriving)
    assert found == {"a": 2} and engine.cancelled == ["c"] and raised.value.task == "b"


def test_who_stops_listening_cancels_the_rest():
    engine = InProcess()
    arriving = work(engine, JOBS)
    next(arriving)
    arriving.close()
    assert engine.cancelled == ["b", "c"]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ray", Address()),
        ("ray:4", Address(workers=4)),
        ("ray://head", Address(host="head")),
        ("ray://10.0.0.1:7000", Address(host="10.0.0.1", port=7000)),
    ],
)
def test_addresses(text, address):
    assert parsed(text) == address
    assert parsed(str(address)) == address


@pytest.mark.parametrize("text", ["dask", "ray:", "ray:0", "ray:many", "ray://", "ray://:1", "ray://head:x"])
def test_what_is_no_address(text):
    with pytest.raises(ValueError, match=f"--on {text}: .*write ray for this machine"):
        tasks_on(text)


def test_problems_are_cut_into_neighbours():
    assert cut(5, 2) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    with pytest.raises(ValueError, match="tasks.problems=0: must be at least 1"):
        Tasks(problems=0)


def test_every_place_has_its_own_cores():
    assert [cores.own_cores(place, 2, [0, 1, 4, 5]) for place in range(3)] == [{0, 1}, {4, 5}, {0, 1}]
    assert cores.own_cores(0, 8, [0, 1]) == {0, 1}


TAKING = """
import os, sys, threading
from spota.cluster.cores import take_cores
assert "jax" not in sys.modules
take_cores(1)
import jax
print(len(os.sched_getaffinity(0)), len(jax.devices()), os.environ["OMP_NUM_THREADS"])
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "sched_setaffinity"), reason="no affinity on this system")
def test_a_worker_takes_its_cores_before_jax_starts():
    done = subprocess.run([sys.executable, "-c", TAKING], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1", "1"]


def test_versions_that_differ_are_named():
    here = this_machine().versions
    assert differences(here, here) == []
    there = {**here, "jax": "0.1"}
    assert differences(here, there) == [f"jax is 0.1 there and {here['jax']} here"]
    assert "node-7 cannot work for this machine: jax is 0.1 there" in refusal("node-7", differences(here, there))


def test_a_cluster_without_room_is_refused():
    nodes = [{"Resources": {"CPU": 4.0, "memory": 3e9}}, {"Resources": {"CPU": 1.0, "memory": 8e9}}]
    assert (_room(nodes, 1), _room(nodes, 2)) == (4, 2)
    with pytest.raises(ValueError, match="needs 1 core and 1 GB: there are 8 cores and 500 MB"):
        _room([{"Resources": {"CPU": 8.0, "memory": 5e8}}], 1)
    with pytest.raises(ValueError, match="needs 8 cores"):
        _room(nodes, 8)


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"--on ray needs Ray; install it with: pip install 'spota\[ray\]'"):
        engine_on("ray", Tasks()).__enter__()


def shared(function, common):
    content = pickle.dumps((function, common))
    return Shared(content, luggage.packed_for(content, elsewhere=False), this_machine().versions)


def test_a_worker_answers_with_a_value_or_a_sentence(monkeypatch):
    monkeypatch.setattr(watchdog.WATCH, "end", None)
    monkeypatch.setattr(cores, "take_cores", lambda _: None)
    said: list = []
    done = worker.work(shared(double, 3), pickle.dumps(2), 1, said.append)
    assert isinstance(done, Done) and done.value == 4 and said[0]["worker"] == done.worker
    failed = worker.work(shared(double, 3), pickle.dumps(3), 1, said.append)
    assert isinstance(failed, Failed) and failed.text == "3 cannot be doubled."
    failed = worker.work(shared(double, 3), pickle.dumps(None), 1, said.append)
    assert isinstance(failed, Failed) and failed.text.startswith("TypeError: unsupported operand")
    other = dataclasses.replace(shared(double, 3), versions={"jax": "0.1"})
    refused = worker.work(other, pickle.dumps(2), 1, said.append)
    assert isinstance(refused, Failed) and "cannot work for this machine: jax is" in refused.text


READING = """
import pickle, sys
from spota.cluster import luggage
given, content = pickle.load(sys.stdin.buffer)
luggage.unpack(given)
print(pickle.loads(content).name())
"""
ROBOT = """
from beside import NAME
class Robot:
    def name(self):
        return NAME
"""


@pytest.mark.parametrize("elsewhere", [True, False])
def test_code_of_ones_own_travels(elsewhere, tmp_path, monkeypatch):
    from spota.sim.objects import named

    monkeypatch.chdir(tmp_path)
    Path("lab").mkdir()
    Path("lab/my_robot.py").write_text(ROBOT)
    Path("lab/beside.py").write_text(f"NAME = 'walker {elsewhere}'")
    robot = named("lab/my_robot.py:Robot", lambda _: True, "a robot")
    content = pickle.dumps(robot)
    given = luggage.packed_for(content, elsewhere)
    assert bool(given.packed) == elsewhere
    if elsewhere:
        Path("lab/my_robot.py").unlink()
    sent = pickle.dumps((given, content))
    done = subprocess.run([sys.executable, "-c", READING], input=sent, capture_output=True, cwd="/", check=True)
    assert done.stdout.decode().strip() == f"walker {elsewhere}"


def test_a_directory_that_is_too_large_stays(tmp_path, monkeypatch):
    (tmp_path / "large.bin").write_bytes(bytes(100))
    monkeypatch.setattr(luggage, "LARGEST", 50.0)
    with pytest.raises(ValueError, match="has more than 50 bytes.*a directory of its own"):
        luggage._archive(tmp_path)
