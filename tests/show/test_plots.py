"""Figures: what they show is what they were given, and they are written as PNG and PDF."""

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

from spota.analysis.evaluate import Axis, Sweep
from spota.envs import make
from spota.experiments import figures
from spota.show import plots
from spota.stats.gap import Gaps

NU = make("cart-pole").domain


def curve(figure: Figure, label: str, panel: int = 0) -> np.ndarray:
    """The y values of the line whose label begins like this."""
    (line,) = [artist for artist in figure.axes[panel].lines if str(artist.get_label()).startswith(label)]
    return np.ma.filled(np.ma.asarray(line.get_ydata(), float), np.nan)


def dots(figure: Figure, label: str) -> np.ndarray:
    """Where the points of that label are, [n, 2]."""
    (points,) = [artist for artist in figure.axes[0].collections if artist.get_label() == label]
    return np.asarray(points.get_offsets())


def shade(figure: Figure) -> tuple[float, float]:
    """The lowest and highest point of the shaded band."""
    box = figure.axes[0].collections[0].get_datalim(figure.axes[0].transData)
    return float(box.y0), float(box.y1)


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_yticklabels()]


def test_convergence_is_the_mean_over_the_runs_with_their_deviation():
    medians = np.array([[20.0, 10.0], [40.0, 20.0]])
    figure = figures.convergence(np.array([[90.0, 40.0], [110.0, 60.0]]), medians, [5, 10], [1, 2], 50.0, "cart-pole")
    np.testing.assert_allclose(curve(figure, "mean UCBOG of 2 runs"), [100.0, 50.0])
    np.testing.assert_allclose(curve(figure, "their median gap"), [30.0, 15.0])
    np.testing.assert_allclose(curve(figure, "threshold 50"), 50.0)
    assert shade(figure) == pytest.approx((40.0, 110.0))
    np.testing.assert_allclose(curve(figure, "$n_c$", 1), [5, 10])
    np.testing.assert_allclose(curve(figure, "$n_r$", 1), [1, 2])
    assert [np.asarray(line.get_ydata()).tolist() for line in figure.axes[0].lines[:2]] == [[90, 40], [110, 60]]


def test_runs_that_ended_or_had_no_bound_are_left_out():
    bounds = np.array([[90.0, np.nan, np.inf], [110.0, 60.0, np.nan]])
    figure = figures.convergence(bounds, np.ones((2, 3)), [5, 10, 15], [1, 2, 3], 50.0, "cart-pole")
    np.testing.assert_allclose(curve(figure, "mean UCBOG"), [100.0, 60.0, np.nan])


@pytest.fixture
def gaps() -> Gaps:
    return Gaps(
        raw=jnp.array([[9.0, -2.0], [-1.0, 3.0]]),
        final=jnp.array([[9.0, 4.0], [0.0, 3.0]]),
        replaced=jnp.array([[False, True], [False, False]]),
        clipped=jnp.array([[False, False], [True, False]]),
    )


def test_positions_run_from_the_smallest_to_the_largest_value():
    low, high = NU["pole_mass"].marginal.support
    np.testing.assert_allclose(plots.position(NU, "pole_mass", np.array([low, (low + high) / 2, high])), [0, 0.5, 1])


def test_figures_are_written_twice_and_the_same_every_time(tmp_path):
    bounds = np.array([[90.0, 40.0], [110.0, 60.0]])
    drawn = (figures.convergence(bounds, bounds / 4, [5, 10], [1, 2], 50.0, "cart-pole") for _ in "ab")
    once, again = (plots.save(one, tmp_path / name / "ucbog") for one, name in zip(drawn, "ab", strict=True))
    assert [path.suffix for path in once] == [".png", ".pdf"]
    for one, other in zip(once, again, strict=True):
        assert one.read_bytes() == other.read_bytes()


def swept(parameter: str, policies: tuple[str, ...]) -> Sweep:
    axis = Axis(parameter, "kg", "", 0.2, (0.15, 0.4), np.array([0.1, 0.2, 0.3]))
    returns = np.arange(float(len(policies) * 6)).reshape(len(policies), 3, 2)
    return Sweep("cart-pole", (axis,), policies, "nominal", False, 2500.0, returns, np.ones_like(returns, bool))


def test_a_sweep_shows_means_the_nominal_value_and_the_distribution():
    figure = plots.sweep_figure(swept("pole_mass", ("ours", "theirs")))
    np.testing.assert_allclose(curve(figure, "theirs"), [6.5, 8.5, 10.5])
    (nominal,) = [line for line in figure.axes[0].lines if line.get_label() == "nominal"]
    assert nominal.get_xdata() == [0.2, 0.2]
    (span,) = figure.axes[0].patches
    assert span.get_extents().transformed(figure.axes[0].transData.inverted()).intervalx == pytest.approx([0.15, 0.3])


def test_sweeps_are_panels_of_one_figure_with_one_legend():
    figure = plots.panels_of_sweeps([swept(name, ("ours",)) for name in ("pole_mass", "cart_mass", "pinion_radius")])
    assert [axes.get_xlabel() for axes in figure.axes] == ["pole_mass [kg]", "cart_mass [kg]", "pinion_radius [kg]", ""]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["distribution", "nominal", "ours"]
    assert all(axes.get_legend() is None for axes in figure.axes)
    first, *others, _ = figure.axes
    assert all(axes.get_shared_y_axes().joined(axes, first) for axes in others)
