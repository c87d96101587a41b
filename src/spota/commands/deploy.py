"""`spota deploy`: a policy on a machine, supervised, with a safe stop from anywhere."""

import contextlib
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro

from spota.commands.output import command, console, print_json, say, warn
from spota.deploy.addresses import parse
from spota.deploy.aftermath import Aftermath, aftermath
from spota.deploy.connect import connected
from spota.deploy.mission import Mission
from spota.deploy.realtime import realtime as asked
from spota.deploy.recording import write_recording
from spota.deploy.rules import Rules
from spota.deploy.sources import Deployable, deployable, measured
from spota.files.atomic import write_atomically, write_json
from spota.runs.directory import new_directory
from spota.text import percent

ANSWERS = {
    "covered": "As far as the recording tells, the certificate speaks of this machine:",
    "not covered": "The certificate is VOID for this machine:",
    "unclear": "Whether the certificate speaks of this machine, the recording does not tell:",
}

VIRTUAL = "The clock was virtual: rate, lateness and our work are assumed, and say nothing of this computer."


def _default(words: str, metavar: str) -> Any:
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {words})")


def deploy(
    policy: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")],
    /,
    device: str,
    env: Annotated[str | None, _default("that of the policy", "ENV")] = None,
    steps: Annotated[int | None, _default("an episode of the platform", "N")] = None,
    place: Annotated[float | None, _default("leave the ball where it is", "DEGREES")] = None,
    known: tuple[str, ...] = (),
    rules: Rules = Rules(),  # noqa: B008, frozen
    watchdog: bool = True,
    realtime: bool = False,
    applies: bool = True,
    out: Annotated[Path | None, _default("runs/deploy-ENV-TIME", "DIR")] = None,
    json: bool = False,
) -> None:
    """Run a policy on a machine: checks, calibration, placement, the run, and a safe stop from anywhere.

    The device paces, this process supervises. Every tick goes into a recording, and a page says how it went. The exit
    code is 0 if the run reached its end; otherwise it names the cause (docs/deploy.md has the list).

    Args:
        policy: A run directory, a policy file, an ONNX file that spota exported, or a controller (with --env).
        device: udp://HOST:PORT, quarc://HOST:PORT, serial://PORT?baud=N, or emulator://ENV?seed=N (a device in this
            process, on a virtual clock).
        env: The platform.
        steps: How long the policy acts.
        place: ball-balancer: bring the ball to the start point at this angle first.
        known: Parameters of this machine that were measured, NAME=VALUE, or the directory of a fit.
        rules: What stops the run, and how gently it begins.
        watchdog: Refuse a device that does not declare a watchdog of its own.
        realtime: Ask for SCHED_FIFO and locked memory.
        applies: Ask the recording whether the certificate speaks of this machine, as `spota applies` does, if there is
            a certificate. It takes some seconds after the run.
        out: Where recording, figures and page go.
        json: Print one JSON document.
    """
    chosen = deployable(policy, env)
    address = parse(device)
    if steps is not None and steps < 1:
        raise ValueError(f"--steps {steps}: the policy must act for at least 1 step.")
    mission = Mission(chosen.env, chosen.controller, steps or chosen.env.max_steps, rules, place)
    given = measured(known, chosen.env)
    link = connected(address, chosen.env, chosen.contract, insist=not watchdog)
    with asked(realtime) as refused, contextlib.closing(link):
        session = mission.session(link, given)
        directory = new_directory(out or Path("runs") / f"deploy-{chosen.env.name}-{time.strftime('%Y%m%d-%H%M%S')}")
        for words in refused:
            warn(words)
        ended = session.run()
    about = aftermath(ended, chosen.env, mission.steps, chosen.certificate)
    again = command("deploy", policy, "--device", device)
    recording = write_recording(directory / "recording.npz", ended, chosen.env, f"spota deploy, {device}")
    if applies and chosen.certificate and ended.ticks.answered.size:
        covered, words = _asked(chosen, recording)
        about = replace(about, covered=covered, notes=(words, *about.notes))
    if address.scheme == "emulator" and about.steps:
        about = replace(about, notes=(*about.notes, VIRTUAL))
    write_json(directory / "deploy.json", {"policy": policy, "device": device, **about.to_dict()})
    from spota.deploy.page import deployment_page  # slow to import

    page = deployment_page(about, ended.ticks, f"{chosen.name} on {device}", again).encode()
    write_atomically(directory / "report.html", lambda file: file.write(page))
    if json:
        print_json({"directory": str(directory), "recording": str(recording), **about.to_dict()})
    else:
        _tell(about, directory)
    sys.exit(about.exit_code)


def _asked(chosen: Deployable, recording: Path) -> tuple[str | None, str]:
    """Whether the certificate's table covers the machine that was recorded, and that in words."""
    from spota.fit import covering  # slow to import
    from spota.fit.recording_file import read

    try:
        found = covering.applies(jax.random.key(0), chosen.env, [read(recording, chosen.env)])
    except ValueError as error:
        return None, f"Whether the certificate speaks of this machine could not be asked: {error}"
    return found.answer, f"{ANSWERS[found.answer]} {found.why}."


def _tell(about: Aftermath, directory: Path) -> None:
    say(about.words, console)
    if about.steps:
        work = f", our work {1e6 * about.work['p50']:.0f} µs at the median" if about.work else ""
        say(
            f"{about.steps} of {about.wanted_steps} steps at {about.rate:.0f} Hz; {percent(about.in_time)} of the "
            f"commands within their period, {about.late} frames late, {about.missed} skipped{work}.",
            console,
        )
    for note in about.notes:
        say(note, console)
    say(f"Wrote {directory}: recording.npz, deploy.json, report.html.", console)
