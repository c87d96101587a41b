"""`spota train` with SPOTA, on the catapult with its closed form: what a run leaves, how it goes on, what it says."""

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from spota import envs, policies
from spota.certify import candidates, looks
from spota.certify.certificate import Certificate
from spota.cli import main
from spota.envs.cart_pole import CartPole
from spota.policies import fingerprint
from spota.runs import certifying, plan
from spota.runs.directory import AS_MADE, Run

TINY = (
    "spota.n_G=10", "spota.n_J=1", "spota.n_b=50", "spota.performance_domains=20", "spota.hidden=[2]",
    "spota.growth=constant", "spota.max_iterations=2", "spota.method=student_t_reference",
)  # fmt: skip
BLOCKS = ("candidate", "references", "comparison", "performance", "certificate")
TRAIN = ("train", "catapult", "--no-report", "--set", *TINY)
NEVER = ("--beta", "0.001")
CERTIFICATES = ("iteration-01/certificate.json", "iteration-02/certificate.json")
SAME = ("certificate.json", "policy.npz", "config.toml", *CERTIFICATES)


class ShortCartPole(CartPole):
    """A tenth of a second."""

    max_steps = 50


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def run(capsys, *arguments: str):
    main(arguments)
    return capsys.readouterr()


def fail(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    told = capsys.readouterr()
    assert not told.out
    return " ".join(told.err.split())


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run of two iterations that nobody interrupted."""
    out = tmp_path_factory.mktemp("whole") / "a"
    main([*TRAIN, *NEVER, "--out", str(out)])
    return out


def same_results(left: Path, right: Path):
    for name in SAME:
        assert (left / name).read_bytes() == (right / name).read_bytes(), name


def copied(whole: Path, to: Path) -> Path:
    for path in whole.rglob("*"):
        if path.is_file() and path.name != ".lock":
            target = to / path.relative_to(whole)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return to


def test_a_run_leaves_plain_files(whole):
    names = {str(p.relative_to(whole)) for p in whole.rglob("*") if p.is_file()}
    blocks = {f"iteration-0{i}/{block}.npz" for i in (1, 2) for block in BLOCKS}
    plain = {"config.toml", AS_MADE, "metrics.jsonl", "policy.npz", "certificate.json", "result.json", ".lock"}
    assert names == blocks | plain | set(CERTIFICATES)
    certificates = [Certificate.from_json((whole / name).read_text()) for name in CERTIFICATES]
    kept = Certificate.from_json((whole / "certificate.json").read_text())
    assert kept == min(certificates, key=lambda c: c.ucbog)
    assert kept.policy_sha256 == fingerprint(policies.load(whole / "policy.npz"))
    result = json.loads((whole / "result.json").read_text())
    assert result["reason"] == "max_iterations"
    assert result["certificate"] == kept.to_dict()
    assert [line["ucbog"] for line in result["history"]] == [c.ucbog for c in certificates]
    config = tomllib.loads((whole / "config.toml").read_text())
    assert (config["algo"], config["spota"]["n_G"], config["spota"]["beta"]) == ("spota", 10, 0.001)


def test_metrics_have_a_line_for_every_block(whole):
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert [line["block"] for line in lines] == [f"iteration-0{i}/{block}" for i in (1, 2) for block in BLOCKS]
    assert all(line["seconds"] >= 0 for line in lines)
    assert lines[4]["ucbog"] == json.loads((whole / "iteration-01/certificate.json").read_text())["ucbog"]


def test_a_finished_run_is_shown_and_nothing_is_computed(whole, tmp_path, capsys, monkeypatch):
    out = copied(whole, tmp_path / "a")
    monkeypatch.setattr(candidates, "find_candidate", lambda *_: pytest.fail("trained again"))
    told = run(capsys, *TRAIN, *NEVER, "--out", "a")
    assert "a holds this run already, and it is finished" in told.err
    assert told.err.count("found in the directory") == 10
    for part in (
        "Undecided: on an unseen domain it may lose",
        "Earns at least",
        "It stopped after 2 iterations",
        "spota rollout catapult --policy a",
    ):
        assert part in told.out
    resumed = json.loads(run(capsys, "train", "--no-report", "--resume", "a", "--json").out)
    assert resumed == {**json.loads((whole / "result.json").read_text()), "directory": "a"}
    same_results(out, whole)


def test_an_undecided_run_goes_on_with_more_iterations_and_keeps_every_block(whole, tmp_path, capsys):
    out = copied(whole, tmp_path / "a")
    told = run(capsys, "train", "--no-report", "--resume", "a", "--set", "spota.max_iterations=3")
    assert told.err.count("found in the directory") == 10
    assert "It stopped after 3 iterations" in told.out
    planned = (*TRAIN, "spota.max_iterations=3")
    run(capsys, *planned, *NEVER, "--out", "b")
    same_results(out, tmp_path / "b")  # as if three had been planned
    for block in BLOCKS:
        assert (out / f"iteration-01/{block}.npz").read_bytes() == (whole / f"iteration-01/{block}.npz").read_bytes()
    run(capsys, "verify", "a")


def test_the_only_candidate_of_a_run_has_all_of_alpha(capsys):
    run(capsys, *TRAIN, "spota.max_iterations=1", *NEVER, "--out", "a")
    told = fail(capsys, "train", "--resume", "a", "--set", "spota.max_iterations=2")
    assert "a was planned with spota.max_iterations = 1" in told
    assert "choose a new --out to try 2" in told


def test_the_config_file_of_a_run_repeats_it(whole, tmp_path, capsys):
    run(capsys, "train", "--no-report", "--config", str(whole / "config.toml"), "--out", "b")
    same_results(tmp_path / "b", whole)


def test_a_certified_run_says_so(capsys):
    told = run(capsys, *TRAIN, "--beta", "1000", "--out", "a")
    assert told.out.startswith("Certified: on an unseen domain it loses on average at most")
    assert "It took 1 iteration and" in told.out
    assert not Path("a/iteration-02").exists()


def test_a_run_whose_time_is_up_says_so(capsys):
    told = run(capsys, *TRAIN, *NEVER, "--max-minutes", "1e-6", "--out", "a")
    assert "It stopped after 1 iteration and" in told.out
    assert "spota train --resume a --max-minutes 60" in told.out
    assert json.loads(Path("a/result.json").read_text())["reason"] == "max_seconds"


def torn(_: bytes) -> bytes:
    return b"torn"


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


@pytest.mark.parametrize(("block", "damage"), [("candidate", half), ("references", torn), ("certificate", half)])
def test_a_damaged_block_is_named_and_computed_again(whole, tmp_path, capsys, block, damage):
    out = copied(whole, tmp_path / "a")
    path = out / "iteration-01" / f"{block}.npz"
    path.write_bytes(damage(path.read_bytes()))
    told = run(capsys, "train", "--no-report", "--resume", "a")
    assert f"iteration-01/{block}.npz is not a finished block of this run" in told.err
    assert told.err.count("found in the directory") == 9
    assert "finished; choose another" not in told.err
    same_results(out, whole)


def test_a_block_of_another_run_is_named_and_computed_again(whole, tmp_path, capsys):
    out = copied(whole, tmp_path / "a")
    run(capsys, *TRAIN, *NEVER, "--seed", "1", "--out", "other")
    foreign, mine = (d / "iteration-02" / "candidate.npz" for d in (tmp_path / "other", out))
    mine.write_bytes(foreign.read_bytes())
    assert "it is a block of another run" in run(capsys, "train", "--no-report", "--resume", "a").err
    same_results(out, whole)


def test_a_directory_with_other_settings_or_another_process_is_refused(whole, tmp_path, capsys):
    copied(whole, tmp_path / "a")
    assert "spota.beta is 0.001 there, 0.002 now" in fail(capsys, *TRAIN, "--beta", "0.002", "--out", "a")
    with Run("a", tomllib.loads((whole / "config.toml").read_text())):
        assert "Another process" in fail(capsys, "train", "--no-report", "--resume", "a")


def stop_before_references(*_):
    raise KeyboardInterrupt


def test_ctrl_c_keeps_everything_and_says_how_to_go_on(whole, tmp_path, capsys, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(looks, "references_from", stop_before_references)
        with pytest.raises(SystemExit) as stop:
            main([*TRAIN, *NEVER, "--out", "a"])
        assert stop.value.code == 130
    told = capsys.readouterr()
    assert not told.out
    left = "a has config.toml, iteration-01, metrics.jsonl: no policy yet. To go on:\n  spota train --resume a\n"
    assert left in told.err
    assert (tmp_path / "a" / "iteration-01" / "candidate.npz").exists()
    assert "candidate: 10000 domains, return" in run(capsys, "train", "--no-report", "--resume", "a").err
    same_results(tmp_path / "a", whole)


def test_the_best_policy_so_far_is_there_after_every_iteration(tmp_path, capsys, monkeypatch):
    find, calls = candidates.find_candidate, []

    def stop_at_the_second(*arguments):
        calls.append(arguments)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return find(*arguments)

    monkeypatch.setattr(candidates, "find_candidate", stop_at_the_second)
    with pytest.raises(SystemExit):
        main([*TRAIN, *NEVER, "--out", "a"])
    assert "result.json" not in (told := capsys.readouterr().err)
    assert "policy.npz: the policy is the best so far" in told
    kept = Certificate.from_json((tmp_path / "a" / "certificate.json").read_text())
    assert kept.policy_sha256 == fingerprint(policies.load(tmp_path / "a" / "policy.npz"))


AS_HERE = "import jax; jax.config.update('jax_num_cpu_devices', 2); jax.devices(); from spota.cli import main; main()"
"""The command line with as many devices as this process has: sums over devices are the same to the last bit."""


def started(out: Path, cache: Path) -> subprocess.Popen:
    command = [sys.executable, "-c", AS_HERE, *TRAIN, *NEVER, "--out", str(out)]
    fast = {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    return subprocess.Popen(
        command, env={**os.environ, **fast}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )  # fmt: skip


def kill_after(process: subprocess.Popen, path: Path, delay: float):
    """SIGKILL some time after a file has appeared, unless the process ends before."""
    while process.poll() is None and not path.exists():
        time.sleep(0.01)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def killed_and_resumed(tmp_path: Path, moments: list[tuple[str, float]]) -> Path:
    out, cache = tmp_path / "a", tmp_path / "cache"
    for name, delay in moments:
        kill_after(started(out, cache), out / name, delay)
    process = started(out, cache)
    _, told = process.communicate()
    assert process.returncode == 0, told.decode()
    return out


FILES = ("config.toml", *(f"iteration-0{i}/{block}.npz" for i in (1, 2) for block in BLOCKS))


def random_moments(how_many: int) -> list[tuple[str, float]]:
    """Each a moment after some file of the run has appeared, while the next one is made."""
    rng = np.random.default_rng()
    chosen = np.sort(rng.choice(len(FILES), how_many, replace=False))
    return [(FILES[i], rng.uniform(0, 0.5)) for i in chosen]


def test_killed_at_some_moment_it_ends_the_same(whole, tmp_path):
    same_results(killed_and_resumed(tmp_path, random_moments(1)), whole)


@pytest.mark.slow
def test_killed_at_ten_random_moments_it_ends_the_same(whole, tmp_path):
    same_results(killed_and_resumed(tmp_path, random_moments(10)), whole)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train",), "Which platform? Write e.g. spota train cart-pole"),
        (("train", "catapult", "--beta", "-3"), "beta=-3.0: must be positive"),
        (("train", "catapult", "--max-minutes", "0"), "give a positive number of minutes"),
        (("train", "catapult", "--preset", "paper"), "The paper has no settings for catapult"),
        (("train", "catapult", "--hidden", "0"), "hidden=(0,): give the sizes of the hidden layers"),
        (("train", "catapult", "--memory", "0"), "memory=0: write a number from 1 to 1000"),
        (("train", "cart-pole", "--memory", "2", "--recurrent", "3"), "a network has one kind of memory"),
        (("train", "cart-pole", "--solver", "ppo", "--memory", "2"), "PPO learns from single observations"),
        (("train", "cart-pole", "--algo", "epopt", "--recurrent", "2"), "EPOpt learns from single observations"),
        (
            ("train", "catapult", "--domains", "3"),
            "--domains has no meaning for --algo spota: write e.g. --set",
        ),
        (("train", "catapult", "--nominal"), "--nominal has no meaning"),
        (("train", "catapult", "--seed", "-1"), "a seed is a whole number"),
        (("train", "catapult", "--set", "n_c=3"), "write spota.n_c=3"),
        (("train", "catapult", "--resume", "a"), "--resume a: there is no run"),
        (("train", "catapult", "--resume", "a", "--out", "b"), "leave out --out"),
        (("train", "catapult", "--resume", "a", "--config", "b"), "leave out --config"),
        (("train", "cart-pole", "--algo", "ppo", "--solver", "ppo"), "--solver has no meaning for --algo ppo"),
        (("train", "cart-pole", "--algo", "ppo", "--beta", "3"), "--beta has no meaning for --algo ppo"),
        (("train", "cart-pole", "--algo", "ppo", "--max-minutes", "3"), "--max-minutes has no meaning"),
        (("train", "cart-pole", "--algo", "ppo", "--preset", "quick"), "quick is a preset of spota"),
    ],
)
def test_mistakes_end_with_one_sentence_and_no_directory(capsys, tmp_path, arguments, message):
    assert message in fail(capsys, *arguments)
    assert not list(tmp_path.iterdir())


def test_a_file_for_something_else_is_named(capsys, tmp_path):
    file = tmp_path / "mine.toml"
    for text, message in {
        'env = "catapult"\nalgo = "assess"\n': "write spota assess --config mine.toml",
        'env = "catapult"\nalgo = "spoty"\n': "there is no algorithm 'spoty'; did you mean 'spota'?",
        'env = "catapult"\nbeta = 3.0\n': "Plan has no setting 'beta'",
        'env = "catapult"\n[spota]\nn_x = 3\n': "mine.toml [spota]: Spota has no setting 'n_x'",
        'env = "catapult"\nspota = 3\n': "mine.toml [spota] = 3: write a table",
    }.items():
        file.write_text(text)
        assert message in fail(capsys, "train", "--config", "mine.toml")


def test_tensorboard_gets_the_curves(capsys, tmp_path):
    pytest.importorskip("tensorboardX")
    run(capsys, *TRAIN, "--beta", "1000", "--out", "a", "--tensorboard")
    (events,) = (tmp_path / "a" / "tensorboard").iterdir()
    assert b"certificate/ucbog" in events.read_bytes()


def test_tensorboard_that_is_not_installed_is_named_before_anything_is_computed(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert "pip install 'spota[logging]'" in fail(capsys, *TRAIN, "--out", "a", "--tensorboard")
    assert not list(tmp_path.iterdir())


def test_help_teaches_tables_presets_and_the_exit_code(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for part in ("--set spota.n_c=10 candidate.iterations=100", "[candidate]", "{tuned,quick,paper}", "exit code is 0"):
        assert part in told


def test_a_run_writes_its_page_and_names_it(whole, capsys, tmp_path):
    shutil.copytree(whole, tmp_path / "a")
    told = run(capsys, "train", "--resume", "a")
    assert "The report is a/report.html" in " ".join(told.out.split())
    assert "Undecided" in (tmp_path / "a" / "report.html").read_text("utf-8")


@pytest.mark.slow
def test_what_a_run_recommends_works_as_it_is_printed(whole, capsys, tmp_path):
    shutil.copytree(whole, tmp_path / "my runs" / "a")
    told = run(capsys, "train", "--resume", "my runs/a").out
    commands = [shlex.split(line) for line in told.splitlines() if line.startswith("  spota ")]
    more = ["spota", "train", "--resume", "my runs/a", "--set", "spota.max_iterations=4"]
    assert commands == [more, ["spota", "rollout", "catapult", "--policy", "my runs/a"]]  # it has no animation
    for command in commands:
        run(capsys, *command[1:])


def test_a_page_that_cannot_be_written_costs_nobody_the_run(whole, capsys, tmp_path):
    shutil.copytree(whole, tmp_path / "a")
    (tmp_path / "a" / "report.html").mkdir()
    with pytest.raises(SystemExit) as stop:
        main(["train", "--resume", "a"])
    told = capsys.readouterr()
    assert stop.value.code == 1  # the run is complete, its page is missing
    assert "a/report.html was not written: a directory stands where the file is needed" in " ".join(told.err.split())
    assert "Undecided" in told.out
    assert "open it" not in told.out


def test_a_full_disk_is_no_success(whole, capsys, tmp_path, monkeypatch):
    shutil.copytree(whole, tmp_path / "a")
    replace = Path.replace

    def full(self, target):
        if Path(target).name == "report.html":
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(SystemExit) as stop:
        main(["train", "--resume", "a", "--json"])
    told = capsys.readouterr()
    assert stop.value.code == 1
    assert "a/report.html was not written: the disk is full" in " ".join(told.err.split())
    assert json.loads(told.out)["directory"] == "a"


def read_only(monkeypatch, directory: Path):
    """As on a disk that takes nothing there; permissions would not stop root."""
    open_file, touch = Path.open, Path.touch

    def refuse(path: Path):
        if directory in path.resolve().parents:
            raise OSError(errno.EROFS, "Read-only file system")

    def guarded_open(self, mode="r", *others, **named):
        if set(mode) & set("wax+"):
            refuse(self)
        return open_file(self, mode, *others, **named)

    def guarded_touch(self, *others, **named):
        refuse(self)
        return touch(self, *others, **named)

    monkeypatch.setattr(Path, "open", guarded_open)
    monkeypatch.setattr(Path, "touch", guarded_touch)


def test_a_read_only_run_is_reported_and_explained_elsewhere(whole, capsys, tmp_path, monkeypatch):
    shutil.copytree(whole, tmp_path / "a")
    read_only(monkeypatch, tmp_path / "a")
    run(capsys, "report", "a", "--quick", "--out", "page.html")
    assert "Undecided" in (tmp_path / "page.html").read_text("utf-8")
    run(capsys, "explain", "a", "--samples", "50", "--out", "told")
    assert (tmp_path / "told" / "explanation.json").is_file()
    for command in ("report", "explain"):
        told = fail(capsys, command, "a")
        assert "was not written: the disk is read-only; choose another place" in told
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == sorted(p.name for p in whole.iterdir())


def test_the_policy_stands_beside_the_platforms_controller_in_the_run(tmp_path, monkeypatch):
    """LQR beside itself: no gain, no warning; and it is computed once."""
    chosen = plan.resolve(None, {"env": "cart-pole"})
    env = ShortCartPole()
    policy = policies.lqr(env)
    with Run(tmp_path / "a", chosen.table()) as run:
        found = certifying.with_controller(chosen, env, policy, 1, run)
        monkeypatch.setattr(certifying, "beside_controller", lambda *_: pytest.fail("computed again"))
        again = certifying.with_controller(chosen, env, policy, 1, run)
    assert found is not None and again is not None
    assert again.to_dict() == found.to_dict()
    assert (found.gain, found.verdict, found.warnings) == (0.0, "equal", [])
    assert "lqr earns" in str(found)
    assert certifying.with_controller(chosen, envs.make("catapult"), policy, 1, run) is None
