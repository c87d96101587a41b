"""Which platform and which policy it is: what changes their identity, and what does not."""

import dataclasses
import subprocess
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import spota
from bowl import NU, Bowl
from host_point_mass import HostPointMass
from spota import policies
from spota.envs import PLATFORMS, make
from spota.envs.catapult import Catapult
from spota.polopt import exact
from spota.sim.domain import DomainDistribution
from spota.sim.effects import Effects
from spota.sim.identity import platform_sha256
from spota.sim.marginals import Uniform

CATAPULT = make("catapult")
SMALL = {"n_c": 5, "n_r": 2, "n_G": 10, "n_J": 1, "n_b": 50, "performance_domains": 20, "hidden": (2,),
         "max_iterations": 1, "method": "student_t_reference"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class OwnCatapult(Catapult):
    """With a field of its own."""

    wind: float = 0.0


def test_every_platform_has_an_identity_of_its_own():
    found = [platform_sha256(make(name)) for name in PLATFORMS]
    assert len(set(found)) == len(PLATFORMS)
    assert found == [platform_sha256(PLATFORMS[name]()) for name in PLATFORMS]  # type: ignore[call-arg]


def test_it_is_the_same_in_another_process():
    code = (
        "from spota.envs import make; from spota.sim.identity import platform_sha256 as s; print(s(make('cart-pole')))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == platform_sha256(make("cart-pole"))


@pytest.mark.parametrize(
    "change",
    [
        {"domain": NU.replace(idle=Uniform(0.0, 2.0))},
        {"domain": DomainDistribution({name: NU[name] for name in reversed(list(NU))})},
        {"effects": Effects()},
    ],
    ids=["domain", "order", "effects"],
)
def test_fields_belong_to_it(change):
    assert platform_sha256(dataclasses.replace(Bowl(), **change)) != platform_sha256(Bowl())


@dataclass(frozen=True, eq=False)
class Patient(HostPointMass):
    """With a time limit of its own."""

    time_limit: float = 60.0  # type: ignore[misc]


def test_how_a_simulator_is_run_does_not():
    assert platform_sha256(Patient(time_limit=600.0)) == platform_sha256(Patient())
    few, many = (type("Batch", (HostPointMass,), {"at_once": n})() for n in (4, 8))
    assert platform_sha256(few) == platform_sha256(many)
    assert platform_sha256(Patient(spread=0.5)) != platform_sha256(Patient())
    drawn, other = (type("Drawn", (HostPointMass,), {"pictured": how})() for how in (Patient.open, Patient.stale))
    assert platform_sha256(drawn) == platform_sha256(other)


SOURCE = '''
from bowl import Bowl, NU
from spota.sim.effects import ActionDelay, Effects

COST = 1.0

def cost(state):
    """Of a state."""
    return COST * state

class Mine(Bowl):
    """A platform of one's own."""

    dt = 0.5
    version = "1"

    def reward(self, state, action, xi):
        # as it was measured
        return -cost(state) - xi[1]
'''


def made_of(source: str, path: Path):
    """The platform that a file of someone's own defines."""
    path.write_text(source)
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    exec(compile(source, str(path), "exec"), vars(module))
    return module.Mine()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("-cost(state) - xi[1]", "-cost(state) + xi[1]"),
        ("COST * state", "COST * state**2"),
        ("COST = 1.0", "COST = 2.0"),
        ("dt = 0.5", "dt = 0.25"),
        ('version = "1"', 'version = "2"'),
        ("    dt = 0.5\n", "    dt = 0.5\n    max_steps = 4\n"),
    ],
)
def test_code_and_constants_belong_to_it(tmp_path, old, new):
    assert old in SOURCE
    before = platform_sha256(made_of(SOURCE, tmp_path / "mine_before.py"))
    assert platform_sha256(made_of(SOURCE.replace(old, new), tmp_path / "mine_after.py")) != before


def test_comments_docstrings_and_places_do_not(tmp_path):
    before = platform_sha256(made_of(SOURCE, tmp_path / "mine_before.py"))
    same = SOURCE.replace("# as it was measured", "# !").replace("Of a state.", "Of any state.") + "\n\n# end\n"
    assert platform_sha256(made_of(same, tmp_path / "mine_after.py")) == before


def test_attributes_that_are_set_later_belong_to_it():
    class Mine(Bowl):
        pass

    before = platform_sha256(Mine())
    Mine.dt = 0.25
    assert platform_sha256(Mine()) != before
    between = platform_sha256(Mine())
    Mine.reward = lambda *_: 0.0  # type: ignore[method-assign]
    assert platform_sha256(Mine()) != between


def test_code_without_a_file_counts_by_its_instructions():
    def mine(factor: int):
        scope: dict = {"__name__": "__main__"}
        exec(f"from bowl import Bowl\nclass Mine(Bowl):\n    def step(self, s, a, xi): return s * {factor}\n", scope)
        return scope["Mine"]()

    assert platform_sha256(mine(2)) == platform_sha256(mine(2)) != platform_sha256(mine(3))


def test_what_is_only_kept_in_an_object_does_not_count():
    @dataclass(frozen=True, eq=False)
    class Mine(Bowl):
        gains: tuple = field(default=(1.0, np.float32(2.0), np.ones(2)))

    assert platform_sha256(Mine()) != platform_sha256(Mine(gains=(1.0, np.float32(2.0), np.zeros(2))))
    assert platform_sha256(Mine()) == platform_sha256(Mine())


def test_another_platform_does_not_get_the_certificate_of_the_first(tmp_path):
    solvers: dict[str, Any] = {"candidate": exact.catapult, "reference": exact.catapult}
    spota.train(OwnCatapult(), settings=SMALL, out=tmp_path / "r", **solvers)
    with pytest.raises(ValueError, match=r"platform.wind is '0.0' there, '1.62' now") as refused:
        spota.train(OwnCatapult(wind=1.62), settings=SMALL, out=tmp_path / "r", **solvers)
    assert "env_sha256" in str(refused.value)
    assert "the platform's fields or code differ" in str(refused.value)


def test_the_ranges_of_a_policy_belong_to_its_fingerprint(tmp_path):
    policy = policies.fnn(jax.random.key(0), CATAPULT, (2,))
    seen = policy.contract.observations[0]
    wide = dataclasses.replace(seen, low=10 * seen.low, high=10 * seen.high)
    wider = dataclasses.replace(policy, contract=dataclasses.replace(policy.contract, observations=(wide,)))
    assert policies.fingerprint(wider) != policies.fingerprint(policy)
    again = policies.load(policies.save(policy, tmp_path / "p.npz"))
    assert policies.fingerprint(again) == policies.fingerprint(policy)


def test_a_policy_file_whose_ranges_were_edited_is_refused(tmp_path):
    path = policies.save(policies.fnn(jax.random.key(0), CATAPULT, (2,)), tmp_path / "p.npz")
    with np.load(path) as archive:
        arrays = dict(archive)
    text = str(arrays["about"]).replace('"high": ', '"high": 10')
    np.savez(path, **{**arrays, "about": np.array(text)})
    with pytest.raises(ValueError, match="was changed after it was written"):
        policies.load(path)
