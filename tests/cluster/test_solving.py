"""Problems cut into tasks: the same numbers whoever solves them, what is finished is kept, who is lost is told."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from in_process import InProcess

import spota
from halving import Halving
from host_point_mass import HostPointMass
from spota.certify.events import Solving
from spota.cluster import connecting
from spota.cluster.jobs import AtWork
from spota.cluster.solving import Kept, Mapped, seldom
from spota.cluster.tasks import Tasks
from spota.driver import drive
from spota.envs import make
from spota.polopt.optimizer import Progress
from spota.polopt.solver import as_solver
from spota.runs.plan import Plan, complete, resolve

ENV = make("catapult")
P, N = 5, 3
KEYS = jax.random.split(jax.random.key(1), P)
DOMAINS = {name: column.reshape(P, N) for name, column in ENV.domain.sample(jax.random.key(2), P * N).items()}
INITS = eqx.filter_vmap(lambda key: spota.fnn(key, ENV, (2,)))(KEYS)
TINY = {
    "n_c": 5, "n_r": 2, "n_G": 6, "n_J": 1, "n_b": 50, "performance_domains": 20, "hidden": (2,), "looks": 1,
    "max_iterations": 1, "method": "student_t_reference", "effort_references": 2, "trainings": 2,
}  # fmt: skip


def same(left, right):
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(one, other)


def wander(key, env, domains, start):
    """A solver of one problem, whose result depends on key, domains and start."""
    del env
    if domains["planet"].sum() < 0:
        raise ValueError("no such planet.")
    step = 0.1 * jax.random.normal(key) + 0.01 * domains["planet"].mean()
    return jax.tree.map(lambda x: x + step, start)


@pytest.mark.parametrize("problems", [1, 2, 7])
def test_it_is_the_solver_on_each_piece(problems):
    mapped = Mapped(wander, "block", InProcess(), Tasks(problems))
    same(mapped(KEYS, ENV, DOMAINS, INITS), as_solver(wander)(KEYS, ENV, DOMAINS, INITS))


def test_who_finishes_first_and_who_is_lost_changes_nothing():
    engines = [InProcess(), InProcess(first=-1), InProcess(lose=lambda name, i: int(name[-1]) % 2 == 0 and i < 3)]
    one, *others = [Mapped(wander, "block", e, Tasks())(KEYS, ENV, DOMAINS, INITS) for e in engines]
    for other in others:
        same(one, other)


def test_what_is_kept_is_not_asked_for_again():
    store: dict = {}
    kept, engine = Kept(store.get, store.__setitem__), InProcess()
    whole = Mapped(wander, "block", engine, Tasks(2), kept)(KEYS, ENV, DOMAINS, INITS)
    assert sorted(store) == ["block/task-001", "block/task-002", "block/task-003"]
    del store["block/task-002"]
    engine = InProcess()
    same(Mapped(wander, "block", engine, Tasks(2), kept)(KEYS, ENV, DOMAINS, INITS), whole)
    assert engine.asked == ["block/task-002"]


def test_a_solver_that_raises_names_its_problem_and_keeps_the_others():
    store: dict = {}
    wrong = {"planet": DOMAINS["planet"].at[3].set(-1.0)}
    mapped = Mapped(wander, "block", InProcess(), Tasks(), Kept(store.get, store.__setitem__))
    with pytest.raises(ValueError, match=r"^no such planet. It was problem 4 of block, whose .* \(planet=-1\)\.$"):
        mapped(KEYS, ENV, wrong, INITS)
    assert len(store) == 3


def test_different_kinds_of_cpu_are_told():
    store: dict = {}
    kept, told = Kept(store.get, store.__setitem__), []
    mapped = Mapped(wander, "block", InProcess(), Tasks(), kept, warn=told.append)
    mapped(KEYS, ENV, DOMAINS, INITS)
    assert not told
    store["block/task-003"] |= {"cpu": np.array("another CPU")}
    mapped(KEYS, ENV, DOMAINS, INITS)
    assert "different kinds of CPU (a CPU; another CPU)" in told[0]


def test_progress_is_about_all_problems():
    heard: list[Progress] = []
    Mapped(Halving(), "block", InProcess(), Tasks(2))(KEYS, ENV, DOMAINS, INITS, heard.append)
    shares = [p.iteration / p.iterations for p in heard]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert [p.returns.size for p in heard][-1] == P


def test_a_worker_does_not_say_everything():
    said: list = []
    watch = seldom(said.append, every=1000.0)
    for i in range(1, 11):
        watch(Progress(i, 10, np.ones(1), np.ones(1), np.ones(1), None, 7, {}))
    assert [one["iteration"] for one in said] == [1, 10] and said[-1]["steps"] == 63


def planned(tasks: Tasks | None) -> Plan:
    tables = {"spota": TINY, "candidate": Halving(2), "reference": Halving(3)}
    return complete(Plan("catapult", preset="quick", tasks=tasks), ENV, [("here", tables)])


def certificates(directory: Path) -> bytes:
    return (directory / "certificate.json").read_bytes()


def test_a_run_is_the_same_with_losses_and_after_an_interruption(tmp_path):
    plan = planned(Tasks())
    drive(plan, ENV, tmp_path / "a", engine=InProcess(), page=False)
    loses = InProcess(lose=lambda _, i: i == 1)
    drive(plan, ENV, tmp_path / "b", engine=loses, page=False)

    class Stopped(InProcess):
        def wait(self, handles, seconds):
            if "iteration-01/references/task-004" in self.asked and len(self.asked) - len(handles) == 5:
                raise KeyboardInterrupt
            return super().wait(handles, seconds)

    stopped = Stopped()
    with pytest.raises(KeyboardInterrupt):
        drive(plan, ENV, tmp_path / "c", engine=stopped, page=False)
    assert len(stopped.cancelled) == 3
    rest = InProcess()
    drive(plan, ENV, tmp_path / "c", engine=rest, page=False)
    assert rest.asked[:3] == [f"iteration-01/references/task-00{i}" for i in (4, 5, 6)]
    assert certificates(tmp_path / "a") == certificates(tmp_path / "b") == certificates(tmp_path / "c")
    lines = [json.loads(line) for line in (tmp_path / "b" / "metrics.jsonl").read_text().splitlines()]
    assert sum("lost" in line for line in lines) == 2 + 6 + 2
    assert {line["losses"] for line in lines if "worker" in line} == {1}
    twice = [line["block"] for line in map(json.loads, (tmp_path / "c" / "metrics.jsonl").read_text().splitlines())
             if "worker" in line]  # fmt: skip
    assert len(twice) == len(set(twice)) == 10


def test_the_report_says_who_worked_and_who_was_lost(tmp_path):
    drive(planned(Tasks()), ENV, tmp_path / "a", engine=InProcess(lose=lambda _, i: i == 1), page=True)
    page = (tmp_path / "a" / "report.html").read_text()
    assert "Who has worked on it" in page and "10 workers were lost, and 10 tasks begun anew" in page


def test_tasks_belong_to_the_settings(tmp_path):
    drive(planned(Tasks()), ENV, tmp_path / "a", engine=InProcess(), page=False)
    assert "[tasks]\nproblems = 1\ncores = 1" in (tmp_path / "a" / "config.toml").read_text()
    drive(planned(Tasks()), ENV, tmp_path / "a", page=False)  # it is finished: nobody is needed
    with pytest.raises(ValueError, match="tasks.problems is 1 there, 2 now"):
        drive(planned(Tasks(2)), ENV, tmp_path / "a", engine=InProcess(), page=False)
    with pytest.raises(ValueError, match="candidate is to be solved by workers.*go on with --on ray"):
        drive(planned(Tasks()), ENV, tmp_path / "b", page=False)
    drive(planned(None), ENV, tmp_path / "c", page=False)
    assert "tasks" not in (tmp_path / "c" / "config.toml").read_text()
    assert not list((tmp_path / "c").rglob("task-*"))


def test_a_plan_finds_them_again(tmp_path):
    (tmp_path / "config.toml").write_text('env = "catapult"\n[tasks]\nproblems = 3\n')
    assert resolve(tmp_path / "config.toml", {}).tasks == Tasks(3)
    assert resolve(tmp_path / "config.toml", {"tasks": Tasks()}).tasks == Tasks(3)
    assert resolve(None, {"env": "catapult"}).tasks is None


def test_those_who_listen_hear_who_is_at_work(monkeypatch):
    from contextlib import nullcontext

    monkeypatch.setattr(connecting, "parsed", lambda _: None)
    monkeypatch.setattr(spota.api, "engine_on", lambda *_: nullcontext(InProcess()))
    heard: list = []
    solvers: dict[str, Any] = {"candidate": Halving(2), "reference": Halving(3)}
    found = spota.train("catapult", settings=TINY, workers="ray", listener=heard.append, **solvers)
    assert any(isinstance(event, AtWork) for event in heard) and any(isinstance(event, Solving) for event in heard)
    alone = spota.train("catapult", settings=TINY, **solvers)
    assert found.certificate.ucbog == alone.certificate.ucbog


@dataclass(frozen=True, eq=False)
class Torn(HostPointMass):
    """Tears where the mass is large."""

    tears_above: float = 1.2


def test_a_simulator_that_raises_names_its_domain():
    env = Torn()
    domains = env.domain.sample(jax.random.key(0), 4)
    problems = {name: column.reshape(4, 1) for name, column in domains.items()}
    problems["mass"] = jnp.array([[0.7], [0.8], [1.4], [0.9]])
    policies = eqx.filter_vmap(lambda key: spota.fnn(key, env, (2,)))(jax.random.split(jax.random.key(0), 4))
    mapped = Mapped(lambda *given: given[-1], "references", InProcess(), Tasks())
    words = r"broke on domain .*mass=1.4.*the rope is torn.*\. It was problem 3 of references\."
    with pytest.raises(ValueError, match=words):
        mapped(jax.random.split(jax.random.key(0), 4), env, problems, policies)
