"""Workers, machines and drivers that are lost in the middle of references, on real clusters of several processes.

All end with the certificate of a run that lost nobody, and nothing that was finished is computed twice.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
SETTINGS = (
    "spota.n_c=5", "spota.n_r=2", "spota.n_G=12", "spota.n_J=1", "spota.n_b=50", "spota.looks=1",
    "spota.max_iterations=1", "spota.performance_domains=20", "spota.hidden=[2]", "spota.effort_references=4",
    "spota.method=student_t_reference",
)  # fmt: skip
PPO = ("iterations=2", "rollouts=2", "minibatches=5", "evaluation_rollouts=2", "evaluate_every=1")
SLOWLY = """
import time
from dataclasses import dataclass

import jax

from spota.envs.catapult import Catapult, sample_optimum
from spota.polopt.exact import extending


@dataclass(frozen=True, eq=False)
class Sling(Catapult):
    name = "sling"


@dataclass(frozen=True)
class Slowly:
    iterations: int = 2

    def __call__(self, key, env, domains, start):
        time.sleep(self.iterations)
        venus = float(domains["planet"].sum())
        best = sample_optimum(domains["planet"].size - venus, venus)
        return extending(best + 0.1 * float(jax.random.normal(key)) / self.iterations, start)


slowly = Slowly()
"""
"""A solver that takes seconds, and whose result depends on its key."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("lab")
    (place / "slowly.py").write_text(SLOWLY)
    return place


def command(out: str, on: str) -> list[str]:
    words = ["train", "slowly.py:Sling", "--solver", "slowly.py:slowly", "--no-report", "--on", on, "--out", out]
    return [sys.executable, "-m", "spota.cli", *words, "--set", *SETTINGS]


def run(lab: Path, out: str, on: str) -> Path:
    done = subprocess.run(command(out, on), capture_output=True, text=True, cwd=lab, env=environment())
    assert done.returncode == 0, done.stderr
    return lab / out


def environment() -> dict[str, str]:
    return {**os.environ, "SPOTA_CHECK": "off"}


@pytest.fixture(scope="module")
def whole(lab) -> Path:
    """A run on two workers that lost nobody."""
    return run(lab, "whole", "ray:2")


def same(left: Path, right: Path) -> None:
    for name in ("certificate.json", "policy.npz"):
        assert (left / name).read_bytes() == (right / name).read_bytes()


def lines(directory: Path) -> list[dict]:
    path = directory / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def finished_once(directory: Path) -> None:
    blocks = [line["block"] for line in lines(directory) if "worker" in line]
    assert len(blocks) == len(set(blocks)) == 1 + 12 + 4


@pytest.mark.parametrize("workers", [1, 4])
def test_the_number_of_workers_changes_nothing(workers, lab, whole):
    same(run(lab, f"with-{workers}", f"ray:{workers}"), whole)


def test_a_host_environment_is_the_same_on_one_worker_and_on_two(tmp_path):
    env = f"{HERE.parent / 'host_point_mass.py'}:HostPointMass"
    sets = ["spota.n_c=2", "spota.n_r=2", "spota.n_G=4", "spota.n_J=2", "spota.looks=1", "spota.max_iterations=1",
            "spota.performance_domains=40", "spota.hidden=[4]", "spota.effort_references=0"]  # fmt: skip
    sets += [f"{who}.{one}" for who in ("candidate", "reference") for one in PPO]
    words = ["train", env, "--preset", "quick", "--no-report", "--beta", "10", "--set", *sets]
    for workers in (1, 2):
        where = ["--on", f"ray:{workers}", "--out", str(tmp_path / str(workers))]
        done = subprocess.run([sys.executable, "-m", "spota.cli", *words, *where], env=environment(), stderr=-1)
        assert done.returncode == 0, done.stderr.decode()
    same(tmp_path / "1", tmp_path / "2")


def test_a_worker_is_killed_every_few_seconds(lab, whole):
    log = (lab / "killed.log").open("w")
    process = subprocess.Popen(command("killed", "ray:2"), cwd=lab, env=environment(), stdout=log, stderr=log)
    while process.poll() is None:
        time.sleep(3.0)
        working = [line for line in lines(lab / "killed") if "worker" in line]
        if working and len([line for line in lines(lab / "killed") if "lost" in line]) < 5:
            kill(worker_of(process.pid))
    log.close()
    assert process.returncode == 0, (lab / "killed.log").read_text()
    assert sum("lost" in line for line in lines(lab / "killed")) >= 2
    finished_once(lab / "killed")
    same(lab / "killed", whole)


def kill(pid: int | None) -> None:
    if pid is not None:
        os.kill(pid, signal.SIGKILL)


def worker_of(driver: int) -> int | None:
    """A process of Ray that works on one of our tasks for this driver."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and "ray::iteration-01/" in _text(entry / "cmdline") and driver in ancestors(entry):
            return int(entry.name)
    return None


def ancestors(entry: Path) -> list[int]:
    found, pid = [], int(entry.name)
    while pid > 1:
        found.append(pid)
        status = _text(Path(f"/proc/{pid}/status"))
        pid = int(next((line.split()[1] for line in status.splitlines() if line.startswith("PPid:")), "0"))
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def test_the_driver_is_killed_and_goes_on(lab, whole):
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command("driver", "ray:2"), cwd=lab, env=environment(), stdout=quiet, stderr=quiet)
    wait_for(lambda: len([x for x in lines(lab / "driver") if "references" in x["block"] and "worker" in x]) >= 4)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (lab / "driver" / "iteration-01/references.npz").exists()
    kept = {path: path.stat().st_mtime_ns for path in (lab / "driver").rglob("task-*.npz")}
    run(lab, "driver", "ray:2")
    assert all(path.stat().st_mtime_ns == before for path, before in kept.items())
    finished_once(lab / "driver")
    same(lab / "driver", whole)


def wait_for(happened: Callable[[], bool], seconds: float = 300.0) -> None:
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.2)


def test_ctrl_c_leaves_a_run_that_goes_on(lab, whole):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it, and so do children
    process = subprocess.Popen(command("stopped", "ray:2"), cwd=lab, env=environment(), stderr=subprocess.PIPE)
    wait_for(lambda: any("references" in x["block"] and "worker" in x for x in lines(lab / "stopped")))
    process.send_signal(signal.SIGINT)
    told = process.communicate()[1].decode()
    assert process.returncode == 130 and "To go on" in told and "Traceback" not in told
    again = [sys.executable, "-m", "spota.cli", "train", "--resume", "stopped", "--no-report"]
    refused = subprocess.run(again, cwd=lab, env=environment(), capture_output=True, text=True)
    assert "go on with --on ray" in " ".join(refused.stderr.split())
    subprocess.run([*again, "--on", "ray:2"], cwd=lab, env=environment(), check=True, capture_output=True)
    finished_once(lab / "stopped")
    same(lab / "stopped", whole)


ON_NODES = """
import os, sys, threading, time
from pathlib import Path
import jax
from ray.cluster_utils import Cluster
import ray
import spota
from spota.runs.plan import resolve
from spota.cluster.address import Address
from spota.cluster.on_ray import connected
from spota.driver import drive

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "node_ip_address": "127.0.0.1"})
doomed = cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1", memory=2_000_000_000)
cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1", memory=2_000_000_000)
ray.init(address=cluster.address, log_to_driver=False, _node_ip_address="127.0.0.1")
out = Path("nodes")

def kill():
    while len(list(out.rglob("references/task-*.npz"))) < 3:
        time.sleep(0.1)
    cluster.remove_node(doomed, allow_graceful=False)

threading.Thread(target=kill, daemon=True).start()
plan = resolve(Path("whole/config.toml"), {})
with connected(Address()) as engine:
    print(engine.workers, "workers", flush=True)
    drive(plan, spota.make("slowly.py:Sling"), out, engine=engine, page=False)
ray.shutdown()
cluster.shutdown()
"""


def test_a_whole_machine_is_lost(lab, whole):
    done = subprocess.run([sys.executable, "-c", ON_NODES], cwd=lab, env={**environment(), **LOOPBACK},
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 workers" in done.stdout
    assert any("lost" in line for line in lines(lab / "nodes"))
    finished_once(lab / "nodes")
    same(lab / "nodes", whole)


LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""So that Ray's ports are open on this machine only."""


def test_a_cluster_that_runs_already_is_sent_the_code_and_finds_the_same(lab, whole, monkeypatch):
    """Its workers look for the code in what was sent, because they began elsewhere."""
    gcs, client, agent = free_port(), free_port(), free_port()
    words = ["start", "--head", "--block", "--num-cpus=2", "--include-dashboard=false", "--node-ip-address=127.0.0.1"]
    ports = [f"--port={gcs}", f"--ray-client-server-port={client}", f"--runtime-env-agent-port={agent}"]
    ray = str(Path(sys.executable).with_name("ray"))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    with (lab / "head.log").open("w") as log:
        head = subprocess.Popen(
            [ray, *words, *ports], cwd="/", env={**environment(), **LOOPBACK}, stdout=log, stderr=log
        )
        try:
            wait_for(lambda: listens(client))
            same(run(lab, "client", f"ray://127.0.0.1:{client}"), whole)
        finally:
            head.terminate()
            head.wait()
    finished_once(lab / "client")


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


def listens(port: int) -> bool:
    with socket.socket() as place:
        return place.connect_ex(("127.0.0.1", port)) == 0
