"""Animations: what they record equals the rollout; what they write opens, moves, and needs nothing else."""

import dataclasses
import html.parser
import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from browser import PHONE
from host_point_mass import HostPointMass
from spota.envs import make
from spota.policies import fnn
from spota.show.animation import ANIMATED, Recording, fragment, page, record, save, to_gif, to_html
from spota.show.animation.drawing import Camera, Drawing
from spota.show.animation.gif import frame_times
from spota.show.animation.recording import FRAMES_PER_SECOND
from spota.show.animation.scenes import picture
from spota.sim import rollout
from spota.sim.domain import repeat

KEY = jax.random.key(4)


def still(observation):
    """No voltage on the one motor."""
    return 0 * observation[:1]


def balance_ball(observation):
    wanted = jnp.clip(-3.45 * observation[2:4] - 2.11 * observation[6:8], -0.5236, 0.5236)
    return 14 * (wanted - observation[:2]) / 5


def push(observation):
    """Lean to one corner: the ball rolls off."""
    return 14 * (0.4 - observation[:2]) / 5


def policy_for(name):
    return balance_ball if name == "ball-balancer" else still


def recorded(name, policy=None, **kw):
    env = make(name)
    return record(env, policy or policy_for(name), env.domain.nominal(), KEY, **kw)


@pytest.fixture(scope="module")
def ball() -> Recording:
    return recorded("ball-balancer", caption="nominal")


@pytest.fixture(scope="module")
def fallen() -> Recording:
    return recorded("ball-balancer", push, caption="pushed <b>&</b> gone")


# ---- recordings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ANIMATED)
def test_every_frame_is_the_state_of_the_rollout_at_that_time(name):
    env = make(name)
    domain = env.domain.sample(jax.random.key(7), 1)
    recording = record(env, policy_for(name), domain, KEY)
    steps = rollout.watch(env, policy_for(name), domain, KEY[None])
    index = np.round(recording.time[:-1] / env.dt).astype(int)
    for track in ("x", "y", "alpha", "theta"):
        if track in recording.tracks:
            np.testing.assert_array_equal(recording.tracks[track][:-1], getattr(steps.state, track)[index, 0])
    np.testing.assert_array_equal(recording.commands[:-1], steps.command[index, :, 0])
    np.testing.assert_array_equal(recording.rewards[:-1], steps.reward[index, 0])


@pytest.mark.parametrize("name", ANIMATED)
def test_frames_are_regular_and_arrays_have_one_length(name):
    recording = recorded(name)
    frames = recording.time.size
    assert recording.interval == pytest.approx(1 / FRAMES_PER_SECOND)
    np.testing.assert_allclose(np.diff(recording.time)[:-1], recording.interval)
    assert 0 < np.diff(recording.time)[-1] <= recording.interval + 1e-9
    assert {track.shape for track in recording.tracks.values()} == {(frames,)}
    assert recording.commands.shape == (frames, len(recording.signals))
    assert recording.rewards.shape == recording.returns.shape == (frames,)


def test_an_episode_that_lasts_has_its_time_limit_as_last_frame(ball):
    env = make("ball-balancer")
    assert not ball.failed
    assert ball.duration == pytest.approx(env.max_steps * env.dt)
    assert ball.time.size == env.max_steps // 10 + 1
    assert "lasted all 4 s" in ball.outcome


def test_the_running_return_ends_at_the_return(ball, fallen):
    env = make("ball-balancer")
    for recording, policy in ((ball, balance_ball), (fallen, push)):
        total = rollout.returns(env, policy, env.domain.nominal(), KEY[None, None]).returns[0, 0]
        assert recording.returns[0] == 0
        assert recording.returns[-1] == pytest.approx(float(total), rel=1e-4)


def test_a_failure_is_the_last_frame_and_says_when(fallen):
    env = make("ball-balancer")
    steps = rollout.watch(env, push, env.domain.nominal(), KEY[None])
    failure = int(np.argmin(steps.alive[:, 0]))
    assert fallen.failed
    assert fallen.duration == pytest.approx(failure * env.dt)
    assert fallen.tracks["x"][-1] == steps.state.x[failure, 0]
    reached = np.abs([fallen.tracks["x"][-1], fallen.tracks["y"][-1]]).max()
    assert reached > fallen.sizes["plate"] / 2
    assert f"failed at {fallen.duration:.2f} s" in fallen.outcome


def test_a_failure_in_the_very_last_step_is_seen():
    env = make("ball-balancer")
    steps = rollout.watch(env, push, env.domain.nominal(), KEY[None])
    failure = int(np.argmin(steps.alive[:, 0]))
    shortened = type("Shortened", (type(env),), {"max_steps": failure})
    short = shortened(**{f.name: getattr(env, f.name) for f in dataclasses.fields(env)})
    recording = record(short, push, env.domain.nominal(), KEY)
    assert recording.failed
    assert recording.duration == pytest.approx(failure * env.dt)
    assert recording.tracks["x"][-1] == pytest.approx(float(steps.state.x[failure, 0]), rel=1e-5)


def test_the_plate_leans_with_its_servo_and_its_offset():
    env = make("ball-balancer")
    domain = {**env.domain.nominal(), "offset_x": jnp.array([4.0])}
    recording = record(env, still_plate, domain, KEY)
    xi = env.params({name: float(column[0]) for name, column in domain.items()})
    assert recording.tracks["servo_x"][0] == pytest.approx(np.deg2rad(4.0))
    lowered = recording.sizes["plate"] / 2 * np.sin(recording.tracks["tilt_x"])
    np.testing.assert_allclose(lowered, xi.r_kin * np.sin(recording.tracks["servo_x"]), rtol=1e-5)


def still_plate(observation):
    return 0 * observation[:2]


def test_lengths_are_those_of_the_domain():
    nominal = {"rail": 0.814, "pole": 2 * 0.089}
    assert recorded("cart-pole").sizes == pytest.approx(nominal)
    assert recorded("qube").sizes == pytest.approx({"arm": 0.085, "pole": 0.129})


# ---- scenes ----------------------------------------------------------------------------------------------------


def test_the_camera_looks_down_from_the_front():
    see = Camera(azimuth=0.0, elevation=0.5, distance=10.0, centre=(0.0, 0.0, 0.0))
    right, up, far, near = see(np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0], [0, -1, 0]]))
    assert right[0] > 0
    assert up[1] > 0
    assert far[1] > 0 > near[1]
    assert abs(near[1]) > abs(far[1])  # perspective
    np.testing.assert_allclose(see(np.zeros((1, 3))), 0)


@pytest.mark.parametrize("name", ["ball-balancer", "cart-pole", "qube"])
def test_bodies_stand_where_the_geometry_says_at_every_frame(name):
    """Against sines and cosines written by hand, where the picture has chains of turns."""
    recording = recorded(name, lambda o: 0.2 + 0 * o[: 2 if name == "ball-balancer" else 1])
    drawing, t, size = Drawing(picture(recording, [recording])), recording.tracks, recording.sizes
    frames = range(recording.time.size)
    tips = {"cart-pole": ("pole", (0, 0, -size.get("pole", 0))), "qube": ("pendulum", (0, 0, -size.get("pole", 0)))}
    body, point = tips.get(name, ("ball", (0, 0, 0)))
    places = np.stack([drawing.place(body, [point], frame)[0] for frame in frames])
    if name == "cart-pole":
        want = t["x"] + size["pole"] * np.sin(t["alpha"]), 0 * t["x"], -size["pole"] * np.cos(t["alpha"])
    elif name == "qube":
        swing, c, s = size["pole"] * np.sin(t["alpha"]), np.cos(t["theta"]), np.sin(t["theta"])
        want = size["arm"] * c - swing * s, size["arm"] * s + swing * c, -size["pole"] * np.cos(t["alpha"])
    else:  # the board falls towards positive x by tilt_x, then towards positive y by tilt_y
        (cx, sx), (cy, sy) = ((np.cos(t[a]), np.sin(t[a])) for a in ("tilt_x", "tilt_y"))
        y, z = cy * t["y"] + sy * size["ball"], -sy * t["y"] + cy * size["ball"]
        want = cx * t["x"] + sx * z, y, -sx * t["x"] + cx * z
    np.testing.assert_allclose(places, np.stack(want, axis=1), atol=1e-6)
    assert np.ptp(places, axis=0).max() > 0.01  # and it moves


def test_a_ball_rolls_without_slipping(ball):
    """The point that touches the plate stands still: a small turn about it moves the centre as far as it rolled."""
    drawing, radius = Drawing(picture(ball, [ball])), ball.sizes["ball"]
    spin = [np.asarray(drawing.picture.tracks[f"spin_{i}"]) for i in range(4)]
    w, x, y, z = (np.stack([track[:-1], track[1:]]) for track in spin)
    np.testing.assert_allclose(w**2 + x**2 + y**2 + z**2, 1, atol=1e-9)
    angle = 2 * np.arccos(np.clip((w[0] * w[1] + x[0] * x[1] + y[0] * y[1] + z[0] * z[1]), -1, 1))
    way = np.hypot(np.diff(ball.tracks["x"]), np.diff(ball.tracks["y"]))
    np.testing.assert_allclose(radius * angle, way, atol=1e-6)


# ---- HTML ------------------------------------------------------------------------------------------------------


class Elements(html.parser.HTMLParser):
    """Counts elements, keeps what stands in each, and refuses tags that do not match."""

    VOID = frozenset({"meta", "link", "input"})

    def __init__(self, text):
        super().__init__()
        self.open, self.count, self.text = [], {}, {}
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        name = dict(attrs).get("class") or tag
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in self.VOID:
            self.open.append((tag, name))

    def handle_startendtag(self, tag, attrs):
        del tag, attrs

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open:
            name = self.open[-1][1]
            self.text[name] = self.text.get(name, "") + data


def test_the_page_is_whole_and_needs_no_network(tmp_path, ball, fallen):
    path = to_html([ball, fallen], tmp_path / "new" / "rollout.html")
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?://|//cdn|@import|url\(|fetch\(|XMLHttpRequest|src=", text)
    elements = Elements(text)
    assert elements.count["figure"] == 2
    assert elements.count["canvas"] == 4
    assert len(text) < 120_000
    assert [p.name for p in path.parent.iterdir()] == ["rollout.html"]


def test_the_data_are_json_and_are_the_recording(ball, fallen):
    scenes = json.loads(Elements(fragment([ball, fallen])).text["spota-data"])
    assert [s["failed"] for s in scenes] == [False, True]
    for scene, recording in zip(scenes, (ball, fallen), strict=True):
        assert scene["scene"] == "plate"
        assert scene["duration"] == pytest.approx(recording.duration)
        assert len(scene["returns"]) == recording.time.size
        np.testing.assert_allclose(scene["picture"]["tracks"]["x"], recording.tracks["x"], rtol=1e-4)
        np.testing.assert_allclose(scene["commands"], recording.commands.T, rtol=1e-4)


def test_words_are_escaped_and_a_failure_is_written(ball, fallen):
    text = fragment([ball, fallen])
    assert "pushed &lt;b&gt;&amp;&lt;/b&gt; gone" in text
    assert "<b>" not in text
    assert fallen.outcome in Elements(text).text["spota-outcome"]
    assert "</script><b>" not in page([ball], title="</script><b>")


# ---- GIF -------------------------------------------------------------------------------------------------------


def test_the_gif_opens_moves_and_is_small(tmp_path, ball, fallen):
    path = to_gif([ball, fallen], tmp_path / "rollout.gif")
    with Image.open(path) as image:
        assert image.n_frames == len(frame_times([ball, fallen])) == 4 * 25 + 1  # type: ignore[attr-defined]
        pauses, frames = [], []
        for i in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(i)
            pauses.append(image.info["duration"])
            frames.append(np.asarray(image.convert("RGB")))
    assert set(pauses[:-1]) == {40}
    assert (frames[0] != frames[50]).any()
    assert path.stat().st_size < 3e6


@pytest.mark.parametrize("name", ["cart-pole", "qube"])
def test_the_other_platforms_have_gifs(tmp_path, name):
    recording = recorded(name)
    with Image.open(to_gif([recording], tmp_path / "rollout.gif")) as image:
        assert image.n_frames == len(frame_times([recording]))  # type: ignore[attr-defined]
        assert image.size[0] == 480


# ---- wrong input -----------------------------------------------------------------------------------------------


def test_the_ending_chooses_the_format(tmp_path, fallen):
    assert save([fallen], tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert save([fallen], str(tmp_path / "a.GIF")).read_bytes().startswith(b"GIF8")
    with pytest.raises(ValueError, match=r"a\.mp4.*write \.html or \.gif"):
        save([fallen], tmp_path / "a.mp4")


def test_a_platform_without_a_picture_says_which_have_one():
    env = make("catapult")
    with pytest.raises(ValueError, match="catapult has no animation.*ball-balancer.*qube"):
        record(env, still, env.domain.nominal(), KEY)


def test_one_domain_at_a_time():
    env = make("cart-pole")
    with pytest.raises(ValueError, match="3 domains were given"):
        record(env, still, repeat(env.domain.nominal(), 3), KEY)


def test_actions_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="is not a number at frame 1.*policy's actions"):
        recorded("cart-pole", lambda o: jnp.nan * o[:1])


@pytest.mark.parametrize("write", [to_html, to_gif])
def test_nothing_to_draw_is_refused(tmp_path, write):
    with pytest.raises(ValueError, match="nothing to draw"):
        write([], tmp_path / "a.html")


# ---- in a browser ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory, ball, fallen) -> Path:
    path = tmp_path_factory.mktemp("page") / "rollout.html"
    return to_html([ball, fallen, recorded("cart-pole"), recorded("qube-swing-up")], path)


TIME = "Number(document.querySelector('.spota-scrub').value)"
LONGEST = "Number(document.querySelector('.spota-scrub').max)"
PICTURE = """(share) => {
  const scrub = document.querySelector(".spota-scrub");
  scrub.value = share * scrub.max;
  scrub.dispatchEvent(new Event("input"));
  return document.querySelector(".spota-scene").toDataURL();
}"""
COLOUR = """([x, y]) => {
  const canvas = document.querySelector(".spota-scene"), share = canvas.width / canvas.clientWidth;
  return [...canvas.getContext("2d").getImageData(x * share, y * share, 1, 1).data];
}"""
BOX = "(() => { const c = document.querySelector('.spota-scene'); return [c.clientWidth, c.clientHeight]; })()"
BUTTON = "document.querySelector('.spota-play').getAttribute('aria-label')"


def test_in_a_browser_the_picture_moves_without_errors(visit, on_disk):
    there = visit(on_disk, size=PHONE)
    there.wait(f"{TIME} > 0.2")
    assert there.page.evaluate(BUTTON) == "pause"
    first, middle, again = (there.page.evaluate(PICTURE, share) for share in (0, 0.5, 0))
    assert first != middle
    assert first == again
    assert there.page.evaluate(BUTTON) == "play"
    assert there.overflow() == 0
    assert there.requests == there.complaints == []


def test_a_browser_draws_where_python_does(visit, on_disk, ball):
    """The ball is one of the few orange things, and where Python sees its middle the canvas is orange."""
    there = visit(on_disk, reduced_motion="reduce")
    drawing = Drawing(picture(ball, [ball]))
    left, right, bottom, top = drawing.picture.extent
    for frame in (0, 60, ball.time.size - 1):
        there.page.evaluate(PICTURE, ball.time[frame] / there.page.evaluate(LONGEST))
        x, y = drawing.see(drawing.place("ball", [(0, 0, 0)], frame))[0]
        wide, high = there.page.evaluate(BOX)
        scale = min(wide / (right - left), high / (top - bottom))
        spot = [wide / 2 + scale * (x - (left + right) / 2), high / 2 - scale * (y - (bottom + top) / 2)]
        red, green, blue, _ = there.page.evaluate(COLOUR, spot)
        assert red > 130 and red > 1.3 * green > 1.3 * blue, (frame, red, green, blue)


def test_in_a_browser_reduced_motion_starts_paused(visit, on_disk):
    there = visit(on_disk, reduced_motion="reduce")
    there.page.wait_for_timeout(400)
    assert there.page.evaluate(TIME) == 0
    assert there.page.evaluate(BUTTON) == "play"
    there.page.click(".spota-play")
    there.wait(f"{TIME} > 0.2")
    assert there.requests == there.complaints == []


def test_a_host_environment_is_shown_by_its_signals(tmp_path):
    env = HostPointMass(spread=0.2)
    policy, domain = fnn(jax.random.key(0), env), env.domain.nominal()
    one = record(env, policy, domain, jax.random.key(1), caption="nominal")
    steps = rollout.watch(env, policy, domain, jax.random.key(1)[None])
    assert one.scene == "curves" and list(one.tracks) == ["x", "v"] and not one.failed
    np.testing.assert_allclose(one.tracks["x"][:-1], steps.state[:, 0, 0])
    assert one.returns[-1] == pytest.approx(float(steps.reward.sum()), rel=1e-5)
    assert '"curves"' in fragment([one])
    assert to_gif([one], tmp_path / "mass.gif").stat().st_size > 1000
