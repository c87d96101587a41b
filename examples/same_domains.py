"""Two controllers on the same random machines, with the same starts and noise: their differences are paired."""

import equinox as eqx

import spota
from spota.analysis.evaluate import evaluation_keys
from spota.analysis.standings import compare


def main() -> None:
    """Print what both earn, and the difference with its interval."""
    env = spota.make("cart-pole")
    k_domains, k_rollouts = evaluation_keys(seed=0)  # no training with this seed has seen these domains
    domains = env.domain.sample(k_domains, 100)
    lqr = spota.find("lqr", env)
    harder = eqx.tree_at(lambda policy: policy.gains, lqr, replace_fn=lambda gains: 1.5 * gains)
    result = compare(k_rollouts, env, {"lqr": lqr, "1.5 times its gains": harder}, domains)
    for name, row in result.rows.items():
        print(f"{name}: {row['mean']:.0f} of {env.max_return:.0f} on average, {100 * row['survival']:.0f} % survived")
    for difference in result.differences:
        print(difference)


if __name__ == "__main__":
    main()
