"""`spota play`: an animated picture of one rollout, or of a few side by side."""

from pathlib import Path
from typing import Annotated

import jax
import tyro

from spota import policies
from spota.analysis.evaluate import evaluation_keys
from spota.commands.output import console, print_json
from spota.commands.sources import OtherTable, Words, told, with_contract
from spota.envs import make
from spota.show import animation


def play(
    env: Annotated[str, tyro.conf.Positional],
    /,
    policy: str = "lqr",
    contract: Words = (),
    domains: int = 1,
    domain: OtherTable = None,
    seed: int = 0,
    noise: bool = True,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Write an animated picture of the policy on the nominal domain and, beside it, on random ones.

    Args:
        env: The platform; `spota envs` lists them. One of your own is FILE.py:NAME, which executes that file.
        policy: A controller (pd, lqr, energy), a policy file, an ONNX file, a run directory, or FILE.py:NAME.
        domains: How many rollouts side by side; the first is on the nominal domain, the others on random ones.
        seed: The same seed gives the same domains, start states and noise.
        noise: Observation noise, as in the paper.
        out: The file to write, .html or .gif (default runs/ENV-POLICY.html).
        json: Print one JSON document that names the file.
    """
    if domains < 1:
        raise ValueError(f"--domains {domains}: ask for at least 1 rollout.")
    platform = make(env, noise=noise, domain=domain)
    (policy,) = with_contract([policy], contract)
    chosen = told(policies.find(policy, platform), platform)
    target = out or Path("runs") / f"{platform.name}-{Path(policy).stem}.html"
    k_domains, k_start = evaluation_keys(seed)
    drawn = [("nominal domain", platform.domain.nominal())]
    for i in range(1, domains):
        drawn.append((f"random domain {i}", platform.domain.sample(jax.random.fold_in(k_domains, i), 1)))
    recordings = [animation.record(platform, chosen, d, k_start, caption=caption) for caption, d in drawn]
    written = animation.save(recordings, target)
    if json:
        print_json({"env": platform.name, "policy": policy, "seed": seed, "file": str(written)})
        return
    console.print(f"Wrote {written}: open it in a browser.", soft_wrap=True)
    for why in dict.fromkeys(r.why_curves for r in recordings if r.why_curves):
        console.print(f"It shows curves, and no picture of the machine, because {why}.", soft_wrap=True, markup=False)
