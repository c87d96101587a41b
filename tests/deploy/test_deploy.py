"""`spota deploy` and `spota emulate` as people run them: two processes on loopback, and one on a virtual clock."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import numpy as np
import pytest

from spota import policies
from spota.cli import main
from spota.deploy.addresses import parse
from spota.deploy.connect import connected, emulated
from spota.deploy.emulator import drawn_domain, emulator
from spota.deploy.introduction import Introduction
from spota.deploy.live import LivePage
from spota.deploy.mission import Mission, gentle
from spota.deploy.onnx import CONTRACT, OnnxController
from spota.deploy.phases import RUN
from spota.deploy.quarc_serving import QuarcServer
from spota.deploy.rules import Rules
from spota.deploy.serving import UdpWire, serve
from spota.deploy.sources import measured
from spota.deploy.supervisor import Cause
from spota.envs import make
from spota.policies.contract import Contract

BALL = make("ball-balancer")
PATIENT = [
    "--rules.in-a-row",
    "100000",
    "--rules.of-last-500",
    "501",
    "--rules.oldest",
    "600",
    "--rules.jump",
    "100000",
    "--rules.rate",
    "1000",
]
"""On a busy machine frames are late; these tests are about what happens, not when."""
VIRTUAL = "emulator://ball-balancer?nominal=1"


def run(arguments: list[str], capsys) -> tuple[int, dict]:
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--json"])
    return int(str(end.value.code)), json.loads(capsys.readouterr().out)


def test_a_controller_on_a_virtual_device(tmp_path, capsys):
    code, told = run(
        ["deploy", "pd", "--env", BALL.name, "--device", VIRTUAL, "--steps", "300", "--out", str(tmp_path / "d")],
        capsys,
    )
    assert code == 0 and told["cause"] == "finished" and told["steps"] == 300
    assert told["delay"] == {"0": 300} and told["in_time"] == 1.0 and told["rate"] == pytest.approx(500)
    assert any("assumed 0 to 30" in note for note in told["notes"])
    assert any("The clock was virtual" in note for note in told["notes"])
    with np.load(tmp_path / "d" / "recording.npz") as recording:
        about = json.loads(str(recording["about"]))
        assert [s["name"] for s in about["signals"]] == [s.name for s in BALL.observations]
        n = recording["time"].size
        assert recording["signals"].shape == (n, 8) and recording["commands"].shape == (n, 2)
        assert np.diff(recording["time"]) == pytest.approx(BALL.dt)
        assert (recording["log_phase"] == RUN).sum() == 300
    page = (tmp_path / "d" / "report.html").read_text()
    assert "It ran to its end" in page and "When commands acted" in page


def test_a_run_that_fails_names_its_cause_by_code_and_sentence(tmp_path, capsys):
    device = "emulator://ball-balancer?nominal=1&silence=1&during=run"
    code, told = run(["deploy", "pd", "--env", BALL.name, "--device", device, "--out", str(tmp_path / "d")], capsys)
    assert code == told["exit_code"] == 20
    assert told["words"] == "Stopped safely in the phase run: too many late frames in a row."
    assert (tmp_path / "d" / "recording.npz").exists() and (tmp_path / "d" / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pd", "--device", VIRTUAL], "a controller needs --env"),
        (["pd", "--env", "ball-balancer", "--device", "http://x"], "is not the address of a device"),
        (["lqr", "--env", "cart-pole", "--device", VIRTUAL], "the policy is for cart-pole"),
        (["pd", "--env", "ball-balancer", "--device", "quarc://127.0.0.1:9"], "add --no-watchdog"),
        (["pd", "--env", "ball-balancer", "--device", VIRTUAL, "--known", "x=1"], "No domain parameter 'x'"),
        (["pd", "--env", "ball-balancer", "--device", "emulator://ball-balancer?lost=1"], "has no 'lost'"),
        (["lqr", "--env", "cart-pole", "--device", "emulator://cart-pole", "--place", "45"], "no ball to place"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(arguments, words, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["deploy", *arguments, "--out", str(tmp_path / "d")])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert words in " ".join(said.split()) and "Traceback" not in said
    assert not (tmp_path / "d").exists()


def test_contracts_of_strangers_are_read_or_refused():
    whole = Introduction.of(BALL, 0.006, {"plate_length": 0.3})
    assert Introduction.from_json(whole.to_json()) == whole
    for wrong in ("", "[]", "{}", "\ud800".encode("utf-8", "surrogatepass"), whole.to_json().replace("0.002", "-1")):
        with pytest.raises(ValueError, match="device's contract"):
            Introduction.from_json(wrong)
    with pytest.raises(ValueError, match="step of 0.002 s"):
        whole.check(Contract(BALL.name, 0.004, BALL.observations, BALL.actions))
    with pytest.raises(ValueError, match="was made for cart-pole"):
        whole.check(Contract.of(make("cart-pole")))


def write_onnx(path, contract: Contract | None) -> np.ndarray:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    gains = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["observation", "gains"], ["action"])],
        "policy",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(gains, "gains")],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    if contract is not None:
        helper.set_model_props(model, {CONTRACT: contract.to_json()})
    onnx.save(model, path)
    return gains


def test_an_onnx_file_acts_as_its_graph_says(tmp_path):
    pytest.importorskip("onnxruntime")
    gains = write_onnx(tmp_path / "p.onnx", Contract.of(BALL))
    act, into = OnnxController(tmp_path / "p.onnx"), np.zeros(2)
    observation = np.random.default_rng(1).normal(size=8)
    act(observation, into)
    assert into == pytest.approx(observation @ gains, rel=1e-5)
    write_onnx(tmp_path / "q.onnx", None)
    with pytest.raises(ValueError, match="no contract of spota"):
        OnnxController(tmp_path / "q.onnx")


def test_the_device_shows_itself_in_a_browser(browser):
    made = emulator(BALL, drawn_domain(BALL, 1))
    live = LivePage(made.device.drive.machine, "machine 1")
    errors: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(live.url)
    before = page.screenshot()
    for tick in range(1, 400):
        made.advance(tick * made.period)
        live(made)
        if tick % 100 == 0:
            page.wait_for_timeout(150)
    deadline = time.monotonic() + 60
    while not re.match(r"0\.[78] s", page.inner_text("#clock")) and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert page.inner_text("#state") == "no controller"
    assert page.screenshot() != before and not errors
    context.close()
    live.close()


def news(url: str) -> dict:
    """The newest event of a live page."""
    with urllib.request.urlopen(f"{url}frames", timeout=60) as stream:
        return json.loads(stream.readline().removeprefix(b"data: "))


def test_a_host_that_is_killed_leaves_a_device_that_stops_by_itself(served, tmp_path):
    """SIGKILL: nobody says good-bye, and the watchdog is all that is left."""
    made = emulator(BALL, drawn_domain(BALL, 0, nominal=True))
    address, drive = served(made, "udp"), made.device.drive
    command = [sys.executable, "-m", "spota.cli", "deploy", "pd", "--env", BALL.name, "--device", str(address)]
    command += [*PATIENT, "--steps", "100000", "--out", str(tmp_path / "d")]
    host = subprocess.Popen(command, env=os.environ, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 300
        while made.device.phase != RUN and host.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert made.device.phase == RUN
    finally:
        host.send_signal(signal.SIGKILL)
        host.wait()
    deadline = time.monotonic() + 60
    while made.device.controller is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert drive.fired and drive.acting.tolist() == [0.0, 0.0]
    assert made.device.controller is None  # and another one may come


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_two_processes_and_a_signal(tmp_path, number, code):
    """SIGKILL: nobody says good-bye; the device's own process shows that it rests, and lets the next one in."""
    python = [sys.executable, "-m", "spota.cli"]
    listening = ["emulate", BALL.name, "--nominal", "--listen", "udp://127.0.0.1:0", "--page", "0", "--json"]
    device = subprocess.Popen([*python, *listening], stdout=subprocess.PIPE, text=True, env=os.environ)
    assert device.stdout is not None
    told = json.loads("".join(iter(device.stdout.readline, "}\n")) + "}")
    out = tmp_path / "d"
    run = ["deploy", "pd", "--env", BALL.name, "--device", told["device"], *PATIENT, "--steps", "100000"]
    host = subprocess.Popen([*python, *run, "--out", str(out)], stdout=subprocess.PIPE, text=True, env=os.environ)
    try:
        deadline = time.monotonic() + 300
        while not news(told["page"])["words"].startswith("run") and time.monotonic() < deadline:
            time.sleep(0.1)
        host.send_signal(number)
        said, _ = host.communicate(timeout=120)
        assert host.returncode == code
        told_why = number != signal.SIGKILL
        assert ("Stopped safely in the phase run" in said) == told_why
        deadline = time.monotonic() + 60
        while (last := news(told["page"]))["words"] != "no controller" and time.monotonic() < deadline:
            time.sleep(0.1)
        assert last["words"] == "no controller" and last["command"] == [0.0, 0.0]
        assert (out / "recording.npz").exists() == told_why
    finally:
        host.kill()
        device.terminate()
        device.communicate()


@pytest.mark.parametrize("line", ["udp", "quarc"])
def test_a_device_that_vanishes_is_lost_and_named(line):
    """The device's side of the line is closed in the middle of the run."""
    made = emulator(BALL, drawn_domain(BALL, 0, nominal=True))
    over = threading.Event()
    if line == "quarc":
        server = QuarcServer(made, parse("quarc://127.0.0.1:0"))
        run, close, address = lambda: server.serve(over.is_set), server.close, parse(f"quarc://127.0.0.1:{server.port}")
    else:
        wire = UdpWire(parse("udp://127.0.0.1:0"))
        run, close, address = lambda: serve(made, wire, over.is_set), wire.close, parse(f"udp://127.0.0.1:{wire.port}")
    thread = threading.Thread(target=run)
    thread.start()
    seen: list[int] = []

    def act(observation: np.ndarray, into: np.ndarray) -> None:
        into[:] = 0.0
        seen.append(observation.size)
        if len(seen) == 120:  # 100 of which warm it up
            over.set()
            thread.join()
            close()

    try:
        link = connected(address, BALL, Contract.of(BALL), insist=True)
        ended = Mission(BALL, act, 10_000, gentle(Rules(rate=1e3)), checking=0.1).session(link).run()
    finally:
        over.set()
        thread.join()
    assert ended.cause is Cause.LOST and ended.phase == RUN and ended.cause.code == 27
    assert "the device was lost" in ended.words and ended.ticks.lost == 0


def test_real_time_that_is_refused_is_said_in_words(monkeypatch, tmp_path, capsys):
    """Nobody's fault: the run goes on at ordinary priority, and says so."""

    def refuse(*_) -> None:
        raise PermissionError(1, "Operation not permitted")

    class Library:
        def mlockall(self, _: int) -> int:
            ctypes.set_errno(12)
            return -1

        def munlockall(self) -> int:
            return 0

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Library())
    with pytest.raises(SystemExit) as end:
        main(
            [
                "deploy",
                "pd",
                "--env",
                BALL.name,
                "--device",
                VIRTUAL,
                "--steps",
                "5",
                "--realtime",
                "--out",
                str(tmp_path / "d"),
            ]
        )
    said = " ".join(capsys.readouterr().err.split())
    assert end.value.code == 0
    assert "SCHED_FIFO was refused (Operation not permitted)" in said and "locked memory was refused" in said


def test_an_emulated_machine_comes_from_a_table_of_ones_own(tmp_path):
    """Rows of a fit, for example: the device is one of them."""
    names = list(BALL.domain)
    rows = {name: np.full(3, row.nominal_value) for name, row in BALL.domain.items()}
    rows["ball_mass"] = np.array([0.011, 0.012, 0.013])
    np.savez(tmp_path / "rows.npz", allow_pickle=False, **rows)
    found = emulated(parse(f"emulator://ball-balancer?seed=1&domain={tmp_path / 'rows.npz'}"), BALL)
    domain = found.device.drive.machine.domain
    assert list(domain) == names
    assert min(abs(domain["ball_mass"] - mass) for mass in rows["ball_mass"]) < 1e-8


@pytest.mark.slow
def test_emulate_says_which_table_its_machine_is_from(tmp_path):
    rows = {name: np.full(2, row.nominal_value) for name, row in BALL.domain.items()}
    np.savez(tmp_path / "rows.npz", allow_pickle=False, **rows)
    command = [sys.executable, "-m", "spota.cli", "emulate", BALL.name, "--domain", str(tmp_path / "rows.npz")]
    command += ["--listen", "udp://127.0.0.1:0", "--seconds", "0.01", "--json"]
    told = json.loads(subprocess.run(command, env=os.environ, capture_output=True, text=True, check=True).stdout)
    assert "rows.npz" in told["about"]


def test_what_is_known_of_a_machine_comes_from_pairs_or_from_a_fit(tmp_path):
    rows = {name: np.full(2, row.nominal_value) for name, row in BALL.domain.items()}
    np.savez(tmp_path / "rows.npz", allow_pickle=False, **rows)
    found = measured((str(tmp_path / "rows.npz"), "ball_mass=0.02"), BALL)
    assert found == pytest.approx({**{n: row.nominal_value for n, row in BALL.domain.items()}, "ball_mass": 0.02})
    with pytest.raises(ValueError, match="write NAME=VALUE"):
        measured(("no-such-fit",), BALL)


@pytest.mark.parametrize("scheme", ["udp", "serial", "quarc"])
def test_a_policy_runs_over_every_line(served, scheme, tmp_path, capsys):
    made = emulator(BALL, drawn_domain(BALL, 0, nominal=True))
    policies.save(policies.lqr(BALL), tmp_path / "lqr.npz")
    watchdog = ["--no-watchdog"] if scheme == "quarc" else []
    arguments = ["deploy", str(tmp_path / "lqr.npz"), "--device", str(served(made, scheme)), *PATIENT, *watchdog]
    code, told = run(
        [*arguments, "--steps", "40", "--rules.beyond", "20", "--rules.danger", "50", "--out", str(tmp_path / "d")],
        capsys,
    )
    assert code == 0 and told["steps"] == 40, told["words"]
    assert bool(told["delay"]) == (scheme != "quarc")  # the bare protocol has no echoes
    assert any("delay is not known" in note for note in told["notes"]) == (scheme == "quarc")
