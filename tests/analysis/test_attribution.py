"""Attribution against closed forms: Sobol indices, the value of information, the search for the worst domain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from bowl import STEPS, Bowl, Hold
from spota.analysis import attribution, sobol, worst
from spota.analysis.information import Gain, Information, information
from spota.envs import make
from spota.policies import fnn
from spota.polopt import exact
from spota.sim.domain import DomainDistribution, Empirical, Parameter, count
from spota.sim.marginals import Constant, Integers, Uniform

KEY = jax.random.key(0)
ENV = Bowl()
HOLD = Hold(jnp.float32(0.0))


def table(**marginals) -> DomainDistribution:
    return DomainDistribution({name: Parameter(marginal) for name, marginal in marginals.items()})


def columns(domains) -> list[np.ndarray]:
    return [np.asarray(column, np.float64) for column in domains.values()]


def ishigami(domains, keys):
    del keys
    x, y, z = columns(domains)
    return np.sin(x) + 7 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)


def ishigami_indices() -> tuple[np.ndarray, np.ndarray]:
    """First order and total, of x, y, z and the noise (Ishigami, Homma 1990)."""
    x, y, xz = (1 + 0.1 * np.pi**4 / 5) ** 2 / 2, 49 / 8, 0.01 * np.pi**8 * (1 / 18 - 1 / 50)
    variance = x + y + xz
    return np.array([x, y, 0, 0]) / variance, np.array([x + xz, y, xz, 0]) / variance


G = np.array([0.0, 1.0, 4.5, 99.0])


def sobol_g(domains, keys):
    del keys
    return np.prod([(np.abs(4 * x - 2) + a) / (1 + a) for a, x in zip(G, columns(domains), strict=True)], axis=0)


def sobol_g_indices() -> tuple[np.ndarray, np.ndarray]:
    """First order and total, of four inputs and the noise (Sobol 1993)."""
    parts = 1 / (3 * (1 + G) ** 2)
    variance = np.prod(1 + parts) - 1
    total = [p * np.prod(1 + np.delete(parts, i)) for i, p in enumerate(parts)]
    return np.append(parts, 0) / variance, np.append(total, 0) / variance


@pytest.mark.parametrize(
    ("domain", "model", "known"),
    [
        (table(**dict.fromkeys("xyz", Uniform(-np.pi, np.pi))), ishigami, ishigami_indices()),
        (table(**dict.fromkeys("abcd", Uniform(0.0, 1.0))), sobol_g, sobol_g_indices()),
    ],
)
def test_indices_agree_with_the_closed_form_within_the_sampling_error(domain, model, known):
    found = sobol.sobol(KEY, domain, model, 4000)
    for ours, interval, truth in (
        (found.first, found.first_interval, known[0]),
        (found.total, found.total_interval, known[1]),
    ):
        error = np.diff(interval)[:, 0] / 3.92  # a standard error
        assert (np.abs(ours - truth) <= 4 * error + 1e-9).all()
        assert (error < 0.02).all()
        assert ((interval[:, 0] <= ours) & (ours <= interval[:, 1])).all()
    assert (found.first <= found.total).all()


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    domain, (first, total) = table(**dict.fromkeys("xyz", Uniform(-np.pi, np.pi))), ishigami_indices()
    hits = []
    for seed in range(25):
        found = sobol.sobol(jax.random.key(seed), domain, ishigami, 400)
        for interval, truth in ((found.first_interval, first), (found.total_interval, total)):
            hits.append((interval[:3, 0] <= truth[:3]) & (truth[:3] <= interval[:3, 1]))
    assert 0.88 < np.mean(hits) <= 1.0


def test_indices_are_those_of_scipy():
    domain = table(**dict.fromkeys("xyz", Uniform(-np.pi, np.pi)))
    uniform = scipy.stats.uniform(-np.pi, 2 * np.pi)
    theirs = scipy.stats.sobol_indices(
        func=lambda x: ishigami(dict(enumerate(x)), None), n=4096, dists=[uniform] * 3, rng=np.random.default_rng(0)
    )
    ours = sobol.sobol(KEY, domain, ishigami, 4096)
    np.testing.assert_allclose(ours.first[:3], theirs.first_order, atol=0.05)
    np.testing.assert_allclose(ours.total[:3], theirs.total_order, atol=0.05)


def test_noise_discrete_and_constant_parameters_have_their_shares():
    domain = table(coin=Integers(0, 1), known=Constant(3.0))

    def model(domains, keys):
        noise = np.asarray(jax.vmap(jax.random.normal)(keys), np.float64)
        return 2.0 * np.asarray(domains["coin"]) + noise  # variances 1 and 1

    found = sobol.sobol(KEY, domain, model, 4000)
    assert found.names == ("coin", sobol.NOISE)
    np.testing.assert_allclose(found.first, [0.5, 0.5], atol=0.04)
    np.testing.assert_allclose(found.total, [0.5, 0.5], atol=0.04)
    assert found.std == pytest.approx(2**0.5, rel=0.03)
    assert found.ranking == ["coin"]


def test_no_variance_has_no_shares():
    found = sobol.sobol(KEY, table(x=Uniform(0.0, 1.0)), lambda domains, _: np.ones(count(domains)), 100)
    assert (found.first == 0).all()
    assert (found.total_interval == 0).all()


def test_dependent_parameters_are_refused():
    rows = Empirical({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="need independent parameters"):
        sobol.sobol(KEY, rows, lambda domains, _: np.asarray(domains["a"]), 100)


def returns_of(x: np.ndarray, noise: float = 0.5) -> np.ndarray:
    """Three policies: always 0, x, and a bad one; two rollouts each."""
    generator = np.random.default_rng(1)
    base = np.stack([np.zeros_like(x), x, np.full_like(x, -1.0)])
    return (base[:, :, None] + noise * generator.standard_normal((3, x.size, 2))).astype(np.float32)


def test_value_of_information_has_the_closed_form():
    drawn = table(x=Uniform(-1.0, 1.0), y=Uniform(0.0, 1.0), known=Constant(1.0)).sample(KEY, 1000)
    known = information(KEY, ("zero", "x", "bad"), returns_of(np.asarray(drawn["x"])), drawn)
    gain = known.gains["x"]  # E[max(0, x)] − 0 = 1/4
    assert gain.low < 0.25 < gain.high
    assert gain.certain
    assert gain.high - gain.low < 0.15
    assert abs(known.gains["y"].mean) < 0.03
    assert known.ranking == ["x", "y"]
    assert known.best in ("zero", "x")


def test_knowing_everything_is_worth_at_least_one_parameter():
    drawn = table(x=Uniform(-1.0, 1.0)).sample(KEY, 1000)
    known = information(KEY, ("zero", "x", "bad"), returns_of(np.asarray(drawn["x"]), 0.01), drawn)
    assert known.everything.mean == pytest.approx(0.25, abs=0.03)
    assert known.gains["x"].mean <= known.everything.mean + 0.01


def test_noise_alone_promises_no_gain():
    """The best of eight equal policies looks better by chance; the gain is measured where it was not chosen."""
    drawn = table(x=Uniform(-1.0, 1.0)).sample(KEY, 1000)
    noise = np.random.default_rng(0).standard_normal((8, 1000, 2)).astype(np.float32)
    known = information(KEY, tuple("abcdefgh"), noise, drawn)
    assert known.gains["x"].mean < 0.1
    assert not known.gains["x"].certain
    assert not known.everything.certain


def test_information_refuses_what_says_nothing():
    drawn = table(x=Uniform(-1.0, 1.0)).sample(KEY, 60)
    with pytest.raises(ValueError, match="2 rollouts per domain or more"):
        information(KEY, ("a",), np.zeros((1, 60, 1), np.float32), drawn)
    with pytest.raises(ValueError, match="20 domains are too few"):
        information(KEY, ("a",), np.zeros((1, 20, 2), np.float32), drawn)


def test_search_finds_the_worst_corner_without_leaving_the_support():
    domain = table(a=Uniform(-1.0, 1.0), b=Uniform(0.0, 5.0), n=Integers(0, 4), known=Constant(2.0))

    def score(domains):
        a, b, n, known = columns(domains)
        assert (known == 2).all()
        assert set(n) <= {0, 1, 2, 3, 4}
        assert (np.abs(a) <= 1).all()
        assert ((b >= 0) & (b <= 5)).all()
        return (a - 0.3) ** 2 - b + (n - 3) ** 2

    found, scores = worst.search(KEY, domain, score, 300, 8)
    a, b, n, _ = (column[0] for column in columns(found))
    assert (a, b, n) == (pytest.approx(0.3, abs=0.1), pytest.approx(5.0, abs=0.1), 3)
    assert (np.diff(scores) >= 0).all()
    drawn = score(domain.sample(KEY, 300)).min()
    assert scores[0] < drawn


def test_rows_of_samples_are_searched_but_not_mixed():
    domain = Empirical({"a": [0.0, 1.0, 2.0], "b": [2.0, 1.0, 0.0]})
    found, _ = worst.search(KEY, domain, lambda d: -np.asarray(d["a"] + d["b"] + 0.1 * d["a"], np.float64), 50)
    assert float(found["a"][0]) == 2.0
    assert float(found["b"][0]) == 0.0


@pytest.fixture(scope="module")
def told():
    return attribution.explain(KEY, ENV, "still", HOLD, n=200)


def test_the_dominant_parameter_is_named_first(told):
    assert told.indices.ranking[0] == "strong"
    assert told.measure_first[0] == "strong"
    assert told.information is None
    shares = dict(zip(told.indices.names, told.indices.total, strict=True))
    variance = {"strong": STEPS**2 * 4 / 45, "weak": STEPS**2 * 0.01, sobol.NOISE: STEPS**2 * 0.01 / 12}
    for name, part in variance.items():  # a sum of independent terms; Var(x²) = 4/45
        assert shares[name] == pytest.approx(part / sum(variance.values()), abs=0.04)
    assert shares["idle"] == shares["action_delay"] == 0
    assert "fixed" not in shares
    words = str(told)
    assert "measure strong first" in words
    assert "One policy alone earns the same" in words


def shares(first, low, high) -> sobol.Indices:
    interval = np.stack([low, high], axis=1)
    return sobol.Indices(("a", "b", sobol.NOISE), np.asarray(first), interval, np.asarray(first), interval, 10.0, 2.0)


def explained(indices: sobol.Indices, known: Information | None = None) -> attribution.Explanation:
    return attribution.Explanation("bowl", "still", 10.0, indices, known, (), {}, {})


def test_advice_is_only_what_the_intervals_carry():
    clear = explained(shares([0.6, 0.1, 0.0], [0.5, 0.05, 0.0], [0.7, 0.2, 0.0]))
    assert clear.measure_first == ["a", "b"]
    assert "measure a first: it tells most about it, and the standard deviation would fall from 2 to 1.26" in (
        attribution._measure_words(clear)
    )
    close = explained(shares([0.4, 0.3, 0.0], [0.1, 0.2, 0.0], [0.7, 0.5, 0.0]))
    assert "measure a or b: these samples do not say which tells more" in attribution._measure_words(close)
    nothing = explained(shares([0.1, 0.05, 0.0], [0.0, 0.0, 0.0], [0.7, 0.5, 0.0]))
    assert nothing.measure_first == []
    assert "Nor do these samples say what to measure" in attribution._measure_words(nothing)


def test_a_prediction_is_not_called_a_gain():
    some = Gain(0.1, -1.0, 1.0)
    known = Information(("still", "other"), "still", {"a": some, "b": some}, some)
    told = explained(shares([0.6, 0.1, 0.0], [0.5, 0.0, 0.0], [0.7, 0.2, 0.0]), known)
    words = attribution._measure_words(told)
    assert "No single measurement earns anything for certain" in words
    assert "To predict its return, measure a first" in words
    assert "Measure a first" not in words
    assert told.measure_first == ["a"]


def test_few_samples_give_no_negative_shares():
    domain = table(a=Uniform(-1.0, 1.0), b=Uniform(-1.0, 1.0))
    for seed in range(20):  # neither alone tells anything
        few = sobol.sobol(jax.random.key(seed), domain, lambda d, _: np.prod(columns(d), axis=0), 50)
        for values in (few.first, few.first_interval, few.total, few.total_interval):
            assert ((values >= 0) & (values <= 1)).all()


def test_the_worst_domain_has_its_causes(told):
    first = told.worst[0]
    assert first.returns == min(w.returns for w in told.worst)
    assert abs(first.domain["strong"]) > 0.98
    assert first.domain["weak"] > 1.25
    assert first.causes[0] == "strong"
    assert first.recovery["strong"] == pytest.approx(STEPS * (first.domain["strong"] ** 2 - 0.2**2), abs=0.01)
    assert first.recovery["weak"] == pytest.approx(STEPS * (first.domain["weak"] - 1), abs=0.01)
    assert first.recovery["idle"] == pytest.approx(0.0, abs=1e-5)
    assert first.quantile["weak"] > 0.98
    assert first.survival == 1
    assert {w.found for w in told.worst} == {"searched", "drawn"}
    assert first.found == "searched"


def test_an_explanation_is_the_same_again_and_as_json(told):
    again = attribution.explain(KEY, ENV, "still", HOLD, n=200)
    assert again.to_dict() == told.to_dict()
    assert told.to_dict()["measure_first"][0] == "strong"


def test_a_choice_among_policies_is_worth_what_the_catapult_says():
    env = make("catapult")
    like = fnn(KEY, env)
    mars, venus = (exact.extending(np.float64(x), like) for x in (0.5, 1.5))
    told = attribution.explain(KEY, env, "venus", venus, {"mars": mars}, n=400)
    known = told.information
    assert known is not None
    assert known.best == "venus"
    # Either is perfect on its own planet: knowing the planet saves what the better one loses on the other.
    lost = 0.3 * 1000 * 1.0**2 / (2 * 3.71)
    gain = known.gains["planet"]
    assert gain.low < lost < gain.high
    assert known.everything.mean == pytest.approx(gain.mean, rel=1e-3)
    assert "Measure planet first: choosing among 2 policies by its value earns" in str(told)


def test_rows_of_samples_have_no_shares_but_the_rest():
    rows = {name: np.asarray(column, np.float64).tolist() for name, column in ENV.domain.sample(KEY, 30).items()}
    env = Bowl(domain=Empirical(rows, ENV.domain))
    told = attribution.explain(KEY, env, "still", HOLD, {"right": Hold(jnp.float32(0.5))}, n=200)
    assert told.indices is None
    assert told.information is not None
    assert told.measure_first[0] == "strong"
    assert "depend on each other" in str(told)


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match="10 domains are too few"):
        attribution.explain(KEY, ENV, "still", HOLD, n=10)
