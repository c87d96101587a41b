"""Films: what is drawn is where the machine was, nothing of it changes a rollout, and what cannot be drawn says why."""

import dataclasses
import json
from pathlib import Path

import jax
import numpy as np
import pytest
from PIL import Image

from drawn_point_mass import HIGH, WIDE, DrawnPointMass, painted, red_at
from host_point_mass import HostPointMass
from spota.files.atomic import plain
from spota.policies import fnn
from spota.show.animation import Recording, fragment, record, to_gif, to_html
from spota.show.animation import film as films
from spota.show.animation.film import CHARACTERS, FEWEST, MOST, SECONDS, decoded
from spota.show.pages import evaluation
from spota.sim import rollout

KEY = jax.random.key(1)
PIXEL = 1.5 / WIDE


def recorded(env, policy=None) -> Recording:
    return record(env, policy or fnn(jax.random.key(0), env), env.domain.sample(KEY, 1), KEY, caption="<here>")


def pushed(observation):
    return 0 * observation[:1] + 1


@pytest.fixture(scope="module")
def mass() -> Recording:
    return recorded(DrawnPointMass(spread=0.2))


@pytest.fixture(scope="module")
def lost() -> Recording:
    return recorded(DrawnPointMass(), pushed)


def test_every_picture_shows_where_the_machine_was(mass):
    assert mass.scene == "film" and mass.film is not None and not mass.why_curves
    assert (mass.film.width, mass.film.height) == (WIDE, HIGH)
    times = mass.film.interval * np.arange(len(mass.film.frames))
    x = np.interp(times, mass.time, mass.tracks["x"])
    shown = [2 * red_at(np.asarray(decoded(frame))) - 1 for frame in mass.film.frames]
    np.testing.assert_allclose(shown[:-1], x[:-1], atol=2 * PIXEL)
    assert np.ptp(x) > 10 * PIXEL


def test_the_last_picture_is_the_failure(lost):
    assert lost.failed and lost.film is not None
    assert red_at(np.asarray(decoded(lost.film.frames[-1]))) > 0.95  # further than 1 m
    assert red_at(np.asarray(decoded(lost.film.frames[-2]))) < 0.95


def test_a_rollout_that_is_drawn_is_the_one_that_is_not(mass):
    plain_one = recorded(HostPointMass(spread=0.2))
    for name in ("time", "commands", "rewards", "returns"):
        np.testing.assert_array_equal(getattr(mass, name), getattr(plain_one, name))
    np.testing.assert_array_equal(mass.tracks["x"], plain_one.tracks["x"])


def disturbing(masses):
    masses.v = masses.v + 1e-3
    return painted(masses)


def raising(masses):
    del masses
    raise OSError("no such screen\nat all.")


def grey(masses):
    return painted(masses)[..., 0]


@pytest.mark.parametrize(
    ("env", "why"),
    [
        (HostPointMass(), "its machines have no method picture()"),
        (DrawnPointMass(paint=raising), "drawing it raised OSError: no such screen at all"),
        (DrawnPointMass(paint=disturbing), "the machine that can be drawn does not move as the one that counts"),
        (DrawnPointMass(paint=grey), "its picture is an array of uint8 with shape (80, 200), where uint8 [height, "),
    ],
    ids=["no picture", "raises", "disturbs", "grey"],
)
def test_what_cannot_be_drawn_is_shown_as_curves_and_says_why(env, why):
    one, steps = recorded(env), rollout.watch(env, fnn(jax.random.key(0), env), env.domain.sample(KEY, 1), KEY[None])
    assert one.scene == "curves" and one.film is None
    assert one.why_curves.startswith(why)
    np.testing.assert_array_equal(one.tracks["x"][:-1], np.asarray(steps.state)[: one.time.size - 1, 0, 0])


def test_a_machine_that_comes_to_no_number_is_not_drawn_there():
    env = DrawnPointMass(diverges_at=5)
    heavy = {**env.domain.nominal(), "mass": jax.numpy.array([1.2], jax.numpy.float32)}
    one = record(env, fnn(jax.random.key(0), env), heavy, KEY)
    assert one.failed and one.duration == pytest.approx(5 * env.dt) and one.film is not None
    assert one.film.frames[-1] == one.film.frames[-2]


def test_pictures_are_as_many_as_time_and_weight_allow():
    def taken(steps, seconds=1e-3, characters=1000, dt=0.002):
        return steps / films._stride(dt, steps, seconds, characters)

    assert taken(2000) == pytest.approx(4 * films.FRAMES_PER_SECOND, rel=0.05)  # 4 s
    assert taken(20_000) == MOST
    assert taken(20_000, seconds=SECONDS / 50) == pytest.approx(50, rel=0.02)
    assert taken(20_000, characters=CHARACTERS // 40) == pytest.approx(40, rel=0.02)
    assert taken(20_000, seconds=SECONDS) == pytest.approx(FEWEST, rel=0.02)
    assert taken(20, dt=0.1) == 20  # never more than there are steps


def test_pictures_are_no_larger_than_a_page_shows_them():
    def huge(masses):
        return np.repeat(np.repeat(painted(masses), 4, axis=0), 4, axis=1)

    one = recorded(DrawnPointMass(paint=huge)).film
    assert one is not None and (one.width, one.height) == (400, 160)
    assert decoded(one.frames[0]).size == (400, 160)


def test_films_survive_json(mass, lost):
    none = evaluation.Failures(2, 0, 1.0, 0.5, True, ())
    whole = evaluation.Evaluation("abc", False, None, (1.0,), none, (mass,), (lost,), (), None)
    again = evaluation.Evaluation.from_dict(json.loads(json.dumps(plain(whole.to_dict()))))
    assert again.recordings[0].film == mass.film
    assert fragment(again.failing) == fragment([lost])


def test_a_gif_has_the_pictures_in_their_colours(tmp_path, mass, lost):
    path = to_gif([mass, lost], tmp_path / "mass.gif")
    places = []
    with Image.open(path) as image:
        for frame in (0, image.n_frames - 1):  # type: ignore[attr-defined]
            image.seek(frame)
            left = np.asarray(image.convert("RGB"))[:, : image.width // 2]
            places.append(2 * red_at(left[46:150]) - 1)
    assert mass.tracks["x"][0] == pytest.approx(places[0], abs=2 * PIXEL)
    assert np.abs(left.astype(int) - [0, 128, 0]).sum(axis=2).min() < 30  # the green below it


# ---- in a browser ----------------------------------------------------------------------------------------------

READ = """(time) => {
  const scrub = document.querySelector(".spota-scrub"), canvas = document.querySelector(".spota-scene");
  scrub.value = time;
  scrub.dispatchEvent(new Event("input"));
  const { width, height } = canvas, pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data, xs = [];
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i] > 180 && pixels[i + 1] < 110 && pixels[i + 3]) xs.push((i / 4) % width);
  }
  return xs.length ? (Math.min(...xs) + Math.max(...xs) + 1) / 2 / width : null;
}"""

DRAWN = """[...document.querySelectorAll("canvas")].map(
  (c) => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v) => v))"""


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory, mass, lost) -> Path:
    return to_html([mass, lost], tmp_path_factory.mktemp("page") / "film.html")


def test_in_a_browser_pictures_keep_step_with_the_clock(visit, on_disk, mass):
    there = visit(on_disk, reduced_motion="reduce")
    for i in (0, 3, 9, 14):
        x = float(np.interp(i * mass.film.interval, mass.time, mass.tracks["x"]))
        there.wait(f"Math.abs(2 * ({READ})({(i + 0.5) * mass.film.interval}) - 1 - {x}) < {3 * PIXEL}")
    assert all(url.startswith("data:image/webp;") for url in there.requests)
    assert not [words for words in there.complaints if words.startswith("error")]


def test_in_a_browser_films_play_and_the_commands_stand_below(visit, on_disk):
    there = visit(on_disk)
    there.wait("Number(document.querySelector('.spota-scrub').value) > 0.2")
    there.wait(f"{DRAWN}.every((v) => v)")
    assert len(there.page.evaluate(DRAWN)) == 4  # two pictures, two curves of commands
    assert there.overflow() <= 0 and not [words for words in there.complaints if words.startswith("error")]


def test_a_film_that_lacks_its_pictures_is_refused(mass):
    with pytest.raises(ValueError, match="has no pictures"):
        fragment([dataclasses.replace(mass, film=None)])
