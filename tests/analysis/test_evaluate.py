"""Sweeps, domain sets and comparisons: the same random numbers for everyone, and figures that are known another way."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from bowl import STEPS, Bowl, Hold
from spota.analysis import evaluate, standings
from spota.policies import fnn
from spota.sim import domain_set, rollout
from spota.sim.domain import Parameter
from spota.sim.effects import ObservationNoise
from spota.sim.marginals import NumPyro, Uniform

ENV = Bowl()
KEY = jax.random.key(0)
POLICIES = {"left": Hold(jnp.float32(-0.5)), "right": Hold(jnp.float32(0.5)), "still": Hold(jnp.float32(0.0))}
VALUES = np.linspace(-1.0, 1.0, 5)


def earned(action: float, strong: np.ndarray, weak: np.ndarray, delay: np.ndarray) -> np.ndarray:
    """The return without the start state: zero acts until the first command arrives."""
    return -(STEPS - delay) * (action - strong) ** 2 - delay * strong**2 - STEPS * weak


def test_a_sweep_is_the_function_that_it_samples():
    result = evaluate.sweep(KEY, ENV, POLICIES, {"strong": VALUES}, rollouts=8)
    assert result.returns.shape == (3, 5, 8)
    start = result.returns[2, 2] - earned(0.0, np.zeros(1), np.ones(1), np.zeros(1))  # differs by rollout alone
    for k, action in enumerate((-0.5, 0.5, 0.0)):
        np.testing.assert_allclose(
            result.returns[k], earned(action, VALUES, np.ones(5), np.zeros(5))[:, None] + start, atol=2e-6
        )
    np.testing.assert_allclose(result.mean, result.returns.mean(axis=-1))
    assert (result.survival == 1).all()
    axis = result.axes[0]
    assert (axis.name, axis.unit, axis.nominal, axis.support) == ("strong", "m", 0.2, (-1.0, 1.0))
    assert json.loads(json.dumps(result.to_dict()))["policies"]["right"]["mean"] == result.mean[1].tolist()


def test_adding_or_reordering_policies_changes_no_number():
    env = ENV.with_effects(noise=ObservationNoise((0.3,)))
    short = {name: fnn(jax.random.key(i), env, (4,)) for i, name in enumerate("abc")}
    domains = env.domain.sample(KEY, 20)

    def both(names):
        some = {name: short[name] for name in names}
        swept = evaluate.sweep(KEY, env, some, {"strong": [0.1, 0.2]}, "random", 20)
        ranked = standings.compare(KEY, env, some, domains, 2)
        figures = {d: swept.returns[i] for i, d in enumerate(swept.policies)}
        pairs = {(d.policy, d.other): (d.mean, d.low, d.high) for d in ranked.differences}
        return figures, ranked.outcomes, pairs

    (alone, alone_there, _), (two, two_there, pairs), (three, three_there, more) = map(both, ("b", "ab", "cba"))
    for swept, there in ((two, two_there), (three, three_there)):
        np.testing.assert_array_equal(swept["b"], alone["b"])
        np.testing.assert_array_equal(there["b"].returns, alone_there["b"].returns)
    np.testing.assert_array_equal(three["a"], two["a"])
    mean, low, high = more["b", "a"]
    assert (-mean, -high, -low) == pairs["a", "b"]


@pytest.mark.parametrize("others", ["nominal", "random"])
def test_all_points_have_the_same_starts_noise_and_other_parameters(others):
    result = evaluate.sweep(KEY, ENV, POLICIES, {"idle": [0.0, 0.4, 9.0, 1.0, 0.0]}, others, 8)
    np.testing.assert_array_equal(result.returns[:, 0], result.returns[:, 1])
    np.testing.assert_array_equal(result.returns[:, 0], result.returns[:, 2])
    assert (result.std[0, 0] > 0.5) == (others == "random")


def test_given_domains_are_the_other_parameters_one_after_the_other():
    given = ENV.domain.sample(jax.random.key(5), 4)
    result = evaluate.sweep(KEY, ENV, {"still": POLICIES["still"]}, {"action_delay": [0.0, 1.0]}, given, 20)
    strong, weak = (np.asarray(given[name]) for name in ("strong", "weak"))
    start = result.returns[0, 0] - np.tile(earned(0.0, strong, weak, np.zeros(4)), 5)
    assert start.std() < 0.2
    assert np.abs(start).max() < 0.3 + 1e-5
    assert result.others == "4 given domains"


def test_a_map_has_the_sweeps_as_its_lines():
    both = {"strong": VALUES, "action_delay": [0.0, 1.0]}
    whole = evaluate.sweep(KEY, ENV, POLICIES, both, rollouts=4)
    line = evaluate.sweep(KEY, ENV, POLICIES, {"strong": VALUES}, rollouts=8)
    assert whole.returns.shape == (3, 5, 2, 4)
    np.testing.assert_allclose(whole.returns[:, :, 0], line.returns[..., :4], atol=1e-6)
    with pytest.raises(ValueError, match="one parameter or two"):
        evaluate.sweep(KEY, ENV, POLICIES, {})


def test_parts_and_progress_change_nothing(monkeypatch):
    whole = evaluate.sweep(KEY, ENV, POLICIES, {"strong": VALUES}, "random", 8)
    monkeypatch.setattr(evaluate, "PART", 10)
    told = []
    parts = evaluate.sweep(KEY, ENV, POLICIES, {"strong": VALUES}, "random", 8, told.append)
    np.testing.assert_allclose(parts.returns, whole.returns, atol=1e-6)
    assert told == sorted(told)
    assert len(told) == 3 * 4
    assert told[-1] == 1.0


def test_a_sweep_may_leave_the_distribution_but_not_the_physics():
    far = evaluate.sweep(KEY, ENV, {"left": POLICIES["left"]}, {"action_delay": [0.0, 3.0]}, rollouts=20)
    np.testing.assert_allclose(far.mean[0, 1] - far.mean[0, 0], 3 * (0.7**2 - 0.2**2), atol=1e-5)  # zero always acts
    for parameter, value, message in (
        ("weak", -0.1, "must be positive"),
        ("action_delay", 0.5, "whole steps"),
        ("action_delay", -1.0, "must be nonnegative"),
        ("strong", np.nan, "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            evaluate.sweep(KEY, ENV, POLICIES, {parameter: [value]}, rollouts=2)
    with pytest.raises(KeyError, match="did you mean 'strong'"):
        evaluate.sweep(KEY, ENV, POLICIES, {"strnog": [0.0]})


def test_requests_for_nothing_are_refused():
    with pytest.raises(ValueError, match="No policy"):
        evaluate.sweep(KEY, ENV, {}, {"strong": VALUES})
    with pytest.raises(ValueError, match="rollouts = 0"):
        standings.compare(KEY, ENV, POLICIES, ENV.domain.nominal(2), 0)


def test_span_covers_the_support_in_steps_that_make_sense():
    np.testing.assert_allclose(evaluate.span(ENV, "strong", 5), VALUES)
    np.testing.assert_array_equal(evaluate.span(ENV, "action_delay", 21), [0, 1, 2])
    np.testing.assert_array_equal(evaluate.span(ENV, "action_delay", 21, high=4.0), [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(evaluate.span(ENV, "fixed", 3, 1.0, 5.0), [1, 3, 5])
    for wrong in ({}, {"low": 5.0, "high": 1.0}):
        with pytest.raises(ValueError, match=r"no range.*nominal: 3 s"):
            evaluate.span(ENV, "fixed", 3, **wrong)
    with pytest.raises(ValueError, match="at least 2"):
        evaluate.span(ENV, "strong", 1)


def test_a_support_without_end_is_cut_where_nothing_is_drawn():
    from numpyro.distributions import Normal

    env = Bowl(domain=ENV.domain.replace(strong=NumPyro(Normal(0.0, 1.0))))
    values = evaluate.span(env, "strong", 3)
    assert -3.2 < values[0] < -2.2
    assert 2.2 < values[-1] < 3.2


def test_unseen_domains_are_not_those_of_a_training_with_the_same_seed():
    k_domains, k_rollouts = evaluate.evaluation_keys(0)
    training = jax.random.split(jax.random.key(0), 5)[0]
    assert not np.isin(ENV.domain.sample(training, 20)["strong"], ENV.domain.sample(k_domains, 500)["strong"]).any()
    assert (jax.random.key_data(k_domains) != jax.random.key_data(k_rollouts)).any()
    with pytest.raises(ValueError, match="seed = -1"):
        evaluate.evaluation_keys(-1)


def test_statistics_of_a_comparison_are_those_of_its_returns():
    domains = ENV.domain.sample(jax.random.key(3), 20)
    result = standings.compare(KEY, ENV, POLICIES, domains, 2)
    keys = jax.random.split(jax.random.split(KEY)[0], (20, 2))
    want = np.asarray(rollout.returns(ENV, POLICIES["left"], domains, keys).returns, np.float64)
    row = result.rows["left"]
    np.testing.assert_allclose(result.outcomes["left"].returns, want, atol=1e-6)
    means = np.sort(want.mean(axis=1))
    assert row["mean"] == pytest.approx(want.mean())
    assert row["std"] == pytest.approx(means.std())
    assert row["worst_20_mean"] == pytest.approx(means[:4].mean())
    assert row["quantile_10"] == pytest.approx(np.quantile(means, 0.1))
    assert [(d.policy, d.other) for d in result.differences] == [
        ("left", "right"), ("left", "still"), ("right", "still"),
    ]  # fmt: skip
    assert result.to_dict()["differences"][0]["words"] == str(result.differences[0])


def test_the_interval_is_student_t_for_normal_differences():
    samples = np.random.default_rng(0).normal(3.0, 2.0, (60, 1)).astype(np.float32)
    low, high = standings.mean_interval(KEY, jnp.asarray(samples))
    want = scipy.stats.ttest_1samp(samples[:, 0], 0.0).confidence_interval(0.95)
    np.testing.assert_allclose((low, high), want, atol=0.1)


def test_the_interval_leans_to_the_long_tail():
    samples = jnp.asarray(np.random.default_rng(1).exponential(1.0, (60, 1)), jnp.float32)
    low, high = standings.mean_interval(KEY, samples)
    assert high - samples.mean() > 1.15 * (samples.mean() - low)


def test_rollouts_of_one_domain_are_no_further_evidence():
    once = jnp.asarray(np.random.default_rng(2).normal(1.0, 1.0, (60, 1)), jnp.float32)
    np.testing.assert_allclose(
        standings.mean_interval(KEY, jnp.repeat(once, 9, axis=1)), standings.mean_interval(KEY, once), rtol=1e-4
    )


def test_differences_in_words():
    ones = jnp.ones((60, 1))
    wide = jnp.asarray(np.random.default_rng(0).normal(0.0, 1.0, (60, 1)), jnp.float32)

    def say(returns, others):
        return str(standings.difference(KEY, "a", "b", returns, others))

    assert say(5 * ones, ones) == "a is better than b by 4 [4, 4]."
    assert say(ones, 5 * ones) == "a is worse than b by 4 [4, 4]."
    assert say(wide, 0 * ones).startswith("a and b cannot be told apart: the difference is ")
    assert "no bound" in say(jnp.ones((1, 4)), jnp.zeros((1, 4)))


def test_a_domain_set_survives_its_file_to_the_last_bit(tmp_path):
    drawn = domain_set.draw(KEY, ENV, 50, seed=7)
    read = domain_set.load(drawn.save(tmp_path / "set.json"), ENV)
    assert (read.env, read.seed) == ("bowl", 7)
    for name, column in ENV.domain.sample(KEY, 50).items():
        np.testing.assert_array_equal(read.domains[name], column)
    assert read.distribution.to_dict() == ENV.domain.to_dict()


def test_longer_delays_in_a_set_get_their_buffer():
    domains = {**ENV.domain.nominal(3), "action_delay": jnp.array([0.0, 1.0, 7.0])}
    assert evaluate.roomy(ENV, domains).effects.delay.longest == 7
    assert evaluate.roomy(ENV, ENV.domain.nominal()) is ENV
    assert standings.compare(KEY, ENV, {"left": POLICIES["left"]}, domains).rows["left"]["n"] == 3


def spoil(document: dict, **changes):
    return {**document, **changes}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: spoil(d, env="cart-pole"), "has domains of 'cart-pole', not of 'bowl'"),
        (lambda d: spoil(d, format=9), "format 9"),
        (lambda d: {k: v for k, v in d.items() if k != "distribution"}, "is not a domain set"),
        (lambda d: [d], "is not a domain set"),
        (lambda d: spoil(d, domains=[1.0]), "domains is .*, and a table is needed"),
        (lambda d: spoil(d, domains={k: v for k, v in d["domains"].items() if k != "weak"}), "no values for weak"),
        (lambda d: spoil(d, domains={**d["domains"], "other": [0.0] * 4}), "No domain parameter 'other'"),
        (lambda d: spoil(d, domains={**d["domains"], "weak": [1.0]}), "differ in length"),
        (lambda d: spoil(d, domains={**d["domains"], "weak": [1.0, 1.0, -1.0, 1.0]}), "weak = -1 kg in domain 2"),
        (
            lambda d: spoil(d, domains={**d["domains"], "weak": [1.0, float("nan"), 1.0, 1.0]}),
            "NaN is not a number there",
        ),
        (
            lambda d: spoil(d, domains={**d["domains"], "weak": [1.0, None, 1.0, 1.0]}),
            "is None, and a finite",
        ),
        (lambda d: spoil(d, distribution={"weak": {"family": "Gauss"}}), "unknown family 'Gauss'"),
    ],
)
def test_spoilt_domain_sets_are_refused_with_a_reason(tmp_path, change, message):
    path = tmp_path / "set.json"
    path.write_text(json.dumps(change(domain_set.draw(KEY, ENV, 4, 0).to_dict())))
    with pytest.raises(ValueError, match=message) as told:
        domain_set.load(path, ENV)
    assert str(path) in str(told.value)


def test_files_that_are_no_sets_are_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be read.*spota domains"):
        domain_set.load(tmp_path / "none.json", ENV)
    (tmp_path / "torn.json").write_text('{"format": 1, "env"')
    with pytest.raises(ValueError, match="is not JSON"):
        domain_set.load(tmp_path / "torn.json", ENV)


def test_a_sweep_does_not_care_for_the_distribution_of_what_it_sets():
    other = Bowl(domain=ENV.domain.replace(strong=Uniform(3.0, 4.0)))
    here, there = (evaluate.sweep(KEY, env, POLICIES, {"strong": VALUES}, "random", 8) for env in (ENV, other))
    np.testing.assert_allclose(here.returns, there.returns, atol=1e-6)
    assert Parameter(Uniform(3.0, 4.0)).nominal_value == there.axes[0].nominal
