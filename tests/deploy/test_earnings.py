"""What measurements say of a return, against closed forms, and what is said beside a certificate."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spota import policies
from spota.certify.certificate import Certificate, Performance
from spota.cli import main
from spota.deploy.aftermath import aftermath
from spota.deploy.earnings import Earnings, about_return, seen_share
from spota.deploy.emulator import drawn_domain, emulator
from spota.deploy.judgement import Judgement
from spota.deploy.mission import Mission
from spota.deploy.page import deployment_page
from spota.deploy.sources import deployable
from spota.deploy.virtual import VirtualLink
from spota.envs import make
from spota.envs.cart_pole import NOISE, Q
from spota.runs import exporting

BALL, CART = make("ball-balancer"), make("cart-pole")
DATA = Path(__file__).parent.parent / "data"


def certificate(policy, env) -> Certificate:
    """Somebody's, about this policy: at least 2400 on average, 2200 in the worst fifth."""
    own = Performance(20_000, 0.95, 2401.0, 2400.0, 0.2, 2300.0, 2200.0, 1.0, 0.0, 2500.0)
    found = Certificate.from_dict(json.loads((DATA / "certificate-format-1.json").read_text()))
    domain = {name: row.to_dict() for name, row in env.domain.items()}
    return replace(
        found, env=env.name, domain=domain, performance=own, policy_sha256=policies.fingerprint(policy), ucbog=30.0
    )


def test_what_noise_hides_at_rest_has_a_closed_form():
    """E exp(−q n²) = 1 / √(1 + 2 q σ²), signal by signal."""
    wanted = np.prod(1 / np.sqrt(1 + 2 * np.array(Q) * np.array(NOISE.std) ** 2))
    assert seen_share(CART) == pytest.approx(wanted, abs=0.005)
    assert seen_share(make("cart-pole", noise=False)) == 1.0


def test_away_from_rest_noise_hides_no_larger_share():
    random, judgement = np.random.default_rng(1), Judgement(CART)
    for _ in range(5):
        true = random.normal(size=4) * [0.05, 0.1, 0.3, 0.3]
        noise = random.normal(size=(4000, 4)) * NOISE.std
        measured, exact = (judgement.rewards(seen, np.zeros((len(seen), 1))) for seen in (true + noise, true[None]))
        assert measured is not None and exact is not None
        assert measured.mean() > (seen_share(CART) - 0.02) * exact[0]


@pytest.mark.parametrize(
    ("episode", "words"),
    [
        ((2410.0, 2550.0), "above the average's bound"),
        ((2300.0, 2450.0), "the measurements cannot tell"),
        ((2150.0, 2300.0), "below the average's bound, and not below that of the worst machines"),
        ((1000.0, 1070.0), "below the average's bound, and below that of the worst machines"),
        (None, "says nothing about that"),
    ],
)
def test_a_run_is_put_beside_both_parts_of_the_certificate(episode, words):
    said = " ".join(about_return(Earnings(2500, 2300.0, episode, False), CART, certificate(policies.lqr(CART), CART)))
    assert words in said
    assert "at least 2400 in 2500 steps on average" in said and "2200 in the worst 20 %" in said
    assert "at most 30 more" in said


def test_a_certified_run_is_told_what_its_certificate_says(tmp_path, capsys):
    """The run's directory and the exported file both bring the certificate along."""
    pytest.importorskip("onnx")
    policy, run = policies.lqr(BALL), tmp_path / "run"
    papers = certificate(policy, BALL)
    policies.save(policy, run / "policy.npz")
    (run / "certificate.json").write_text(papers.to_json())
    exporting.export(policy, tmp_path / "lqr.onnx", BALL, papers)
    for source in (run, tmp_path / "lqr.onnx"):
        device = ["--device", "emulator://ball-balancer?nominal=1", "--out", str(tmp_path / f"d-{source.stem}")]
        with pytest.raises(SystemExit):
            main(["deploy", str(source), *device, "--steps", "50", "--json"])
        notes = " ".join(json.loads(capsys.readouterr().out)["notes"])
        assert "the certificate assumed 0 to 30" in notes and "says nothing about that" in notes
        assert "could not be asked" in notes  # a tenth of a second says nothing about a machine


def test_a_page_says_when_the_certificate_is_void():
    made = emulator(BALL, drawn_domain(BALL, 0, nominal=True))
    ended = Mission(BALL, deployable("pd", BALL.name).controller, 20, checking=0.1).session(VirtualLink(made)).run()
    about = aftermath(ended, BALL, 20, None)
    assert "void here" not in deployment_page(about, ended.ticks, "pd", "again")
    page = deployment_page(replace(about, covered="not covered"), ended.ticks, "pd", "again")
    assert "its certificate is void here" in page and 'data-status="void"' in page


def test_a_certificate_of_another_policy_is_not_told(tmp_path):
    run = tmp_path / "run"
    policies.save(policies.lqr(CART), run / "policy.npz")
    (run / "certificate.json").write_text(certificate(policies.lqr(BALL), CART).to_json())
    assert deployable(str(run), None).certificate is None


def test_a_run_is_asked_about_the_table_that_it_was_made_with(tmp_path):
    run = tmp_path / "run"
    policies.save(policies.lqr(BALL), run / "policy.npz")
    assert deployable(str(run), None).env is BALL
    main(["envs", "ball-balancer", "--write", str(run / "domain.json")])
    table = json.loads((run / "domain.json").read_text())
    table["domain"]["action_delay"]["high"] = 12
    (run / "domain.json").write_text(json.dumps(table))
    assert deployable(str(run), None).env.domain["action_delay"].marginal.support == (0, 12)
