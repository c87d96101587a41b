"""Recordings from files: what is read is what was written, and each thing that can be wrong has its own sentence."""

from importlib import resources

import numpy as np
import pytest

import spota
from spota.commands.recordings import read_recordings
from spota.fit import recording_file
from spota.fit.recording import rate_of
from spota.fit.segments import cut

CART_POLE, QUBE = spota.make("cart-pole"), spota.make("qube")
NAMES = (("x", "m"), ("alpha_error", "rad"), ("x_dot", "m/s"), ("alpha_dot", "rad/s"))
V = (("V", "V"),)


def motion(n: int = 1001, dt: float = 0.004):
    """A cart that swings, and a pole that turns over: known in closed form."""
    t = np.arange(n) * dt
    x, alpha = 0.1 * np.sin(3 * t), 2.5 * t
    wrapped = np.pi - (np.pi - alpha) % (2 * np.pi)
    signals = np.stack([x, wrapped, 0.3 * np.cos(3 * t), np.full(n, 2.5)], axis=1)
    return t, signals, np.sin(t)[:, None]


def written(path, t, signals, commands, names=NAMES, inputs=V):
    return recording_file.write(path, t, signals, commands, names, inputs, env="cart-pole")


def test_a_recording_is_read_as_it_was_written_with_angles_unwrapped(tmp_path):
    t, signals, commands = motion()
    read = recording_file.read(written(tmp_path / "r.npz", t, signals, commands[:-1]), CART_POLE)
    np.testing.assert_allclose(read.positions[:, 0], signals[:, 0])
    np.testing.assert_allclose(read.positions[:, 1], 2.5 * t, atol=1e-9)
    np.testing.assert_allclose(read.commands[:-1], commands[:-1])
    assert "Rates are not used" in read.notes[0] and len(read.sha256) == 64


def test_what_was_not_used_is_said_once_for_all_recordings(tmp_path, capsys):
    t, signals, commands = motion()
    files = [str(written(tmp_path / f"{i}.npz", t, signals * (1 + 0.01 * i), commands)) for i in range(3)]
    assert len(read_recordings(files, CART_POLE)) == 3
    told = capsys.readouterr().err
    assert told.count("Rates are not used") == 1 and "1.npz and 1 more: " in told and "2.npz" not in told


def test_a_csv_file_in_degrees_and_millimetres_is_the_same_recording(tmp_path):
    t, signals, commands = motion()
    lines = ["# anyone's machine", "time [ms], V [V], x [mm], alpha_error [deg]"]
    for row in zip(t * 1e3, commands[:, 0], signals[:, 0] * 1e3, np.rad2deg(signals[:, 1]), strict=True):
        lines.append(",".join(f"{value:.9f}" for value in row))
    (tmp_path / "r.csv").write_text("\n".join(lines))
    read = recording_file.read(tmp_path / "r.csv", CART_POLE)
    np.testing.assert_allclose(read.positions, np.stack([signals[:, 0], 2.5 * t], axis=1), atol=1e-7)
    np.testing.assert_allclose(read.commands, commands, atol=1e-8)


def test_a_segment_begins_where_the_machine_was_and_rates_are_slopes(tmp_path):
    t, signals, commands = motion()
    read = recording_file.read(written(tmp_path / "r.npz", t, signals[:, :2], commands, NAMES[:2]), CART_POLE)
    segments = cut([read], CART_POLE, 10)
    first = 0.03  # seconds: the first beginning, after as much history as the longest delay and some steps need
    begins = first + 0.5 * np.arange(segments.n)
    np.testing.assert_allclose(segments.start[0], 0.1 * np.sin(3 * begins), atol=1e-5)
    np.testing.assert_allclose(segments.start[2], 0.3 * np.cos(3 * begins), atol=1e-3)
    np.testing.assert_allclose(segments.start[3], 2.5, atol=1e-3)
    assert (segments.every, segments.positions.shape[0]) == (2, 125)
    held = segments.commands[segments.history, 0]  # the command at the beginning, held since its sample
    np.testing.assert_allclose(held, np.sin(0.004 * np.floor(begins / 0.004 + 1e-6)), atol=1e-6)


def test_other_rates_and_unequal_steps_are_put_on_the_platforms_clock(tmp_path):
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.003, 0.006, 900))
    signals = np.stack([0.1 * np.sin(3 * t), 2.5 * t], axis=1)
    read = recording_file.read(written(tmp_path / "r.npz", t, signals, np.sin(t)[:, None], NAMES[:2]), CART_POLE)
    segments = cut([read], CART_POLE, 10)
    begins = t[0] + 0.03 + 0.5 * np.arange(segments.n)
    np.testing.assert_allclose(segments.positions[-1, 0], 0.1 * np.sin(3 * (begins + 0.5)), atol=1e-4)
    assert any("unequal" in note for note in read.notes)


def spoiled(kind: str):
    t, signals, commands = motion()
    names, inputs = NAMES, V
    if kind == "NaN":
        signals[500, 0] = np.nan
    if kind == "degrees":
        signals[:, 1] = np.rad2deg(0.5 * np.sin(4 * t))
    if kind == "millivolt":
        commands = 1000 * commands
    if kind == "short":
        t, signals, commands = t[:200], signals[:200], commands[:200]
    if kind == "backwards":
        t = t.copy()
        t[300] = t[298]
    if kind == "slow":
        t, signals, commands = (x[::20] for x in motion(5001))
    if kind == "another":
        names = (("theta", "rad"), *NAMES[1:])
    if kind == "unit":
        names = (("x", "inch"), *NAMES[1:])
    if kind == "shape":
        signals = signals[:, :2]
    return t, signals, commands, names, inputs


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("NaN", r"x is missing \(NaN\) in 1 of 1001 samples, first at 2 s"),
        ("degrees", "it seems to be in degrees"),
        ("millivolt", "is it in another unit"),
        ("short", r"is too short: it lasts 0.80 s"),
        ("backwards", "time does not go on after 1.196 s"),
        ("slow", "12.5 samples a second; at least 25"),
        ("another", "is not of a cart-pole: it has no signal 'x'"),
        ("unit", "x is in 'inch', which nobody here can convert to 'm'"),
        ("shape", "do not fit together"),
    ],
)
def test_what_is_wrong_has_its_own_sentence(tmp_path, kind, words):
    file = written(tmp_path / "r.npz", *spoiled(kind))
    with pytest.raises(ValueError, match=words):
        recording_file.read(file, CART_POLE)


def test_what_is_no_recording_is_refused(tmp_path):
    np.savez(tmp_path / "objects.npz", about=np.array([{}], dtype=object), time=np.zeros(3))
    (tmp_path / "r.pkl").write_bytes(b"\x80\x04.")
    (tmp_path / "r.csv").write_text("x,y\n1,2\n")
    for name, words in (("objects.npz", "not numbers or text"), ("r.pkl", "never a pickle"), ("r.csv", "no unit")):
        with pytest.raises(ValueError, match=words):
            recording_file.read(tmp_path / name, CART_POLE)
    for source, words in (("sample:nothing/here", "There is no sample"), ("sample:../../*", "There is no sample")):
        with pytest.raises(ValueError, match=words):
            recording_file.read_all([source], CART_POLE)
    with pytest.raises(ValueError, match="given twice"):
        recording_file.read_all(["sample:qube/chirp+1.5V-0"] * 2, QUBE)


def test_the_real_recordings_are_all_there_with_their_licence():
    assert len(recording_file.samples()) == 25
    chirps = recording_file.read_all(["sample:cart-pole/chirp*"], CART_POLE)
    assert {len(r.positions) > 1230 for r in chirps} == {True} and len(chirps) == 10
    assert abs(abs(chirps[0].positions[0, 1]) - np.pi) < 0.25  # it hangs, and swings a little
    licence = resources.files("spota.fit").joinpath("data", "LICENSE").read_text()
    assert "Technical University of Darmstadt" in licence and "BSD 3-Clause" in licence


def test_what_was_recorded_before_the_amplifier_acts_is_left_out(tmp_path):
    t, signals, _ = motion()
    asleep = t < 0.6
    signals[asleep, 0] = signals[asleep.argmin(), 0]  # the cart rests, and the pole swings on its own
    told = 3.5 * np.cos(5 * t)[:, None]
    read = recording_file.read(written(tmp_path / "r.npz", t, signals, told), CART_POLE)
    assert read.time[0] == 0 and 0.58 < t[-1] - read.seconds < 0.65
    np.testing.assert_allclose(read.commands[0], told[len(t) - len(read.time)])
    assert "Commands act from 0.6" in read.notes[-1]
    real = recording_file.read_all(["sample:cart-pole/*"], CART_POLE)
    assert len(real) == 15 and all("told to move" in r.notes[-1] for r in real)
    assert not any("told to move" in note for r in recording_file.read_all(["sample:qube/*"], QUBE) for note in r.notes)
    awake = recording_file.read(written(tmp_path / "a.npz", *motion()), CART_POLE)
    assert len(awake.time) == 1001


def test_rates_are_paired_with_their_positions():
    assert rate_of(CART_POLE) == {2: 0, 3: 1}
    assert rate_of(spota.make("ball-balancer")) == {4: 0, 5: 1, 6: 2, 7: 3}


def test_a_pole_of_these_recordings_is_longer_than_the_papers_table_allows():
    """The pole's own equation, by least squares: no motor, no cart parameters and none of our estimators."""
    scipy_signal = pytest.importorskip("scipy.signal")
    rows, wanted = [], []
    for r in recording_file.read_all(["sample:cart-pole/chirp*"], CART_POLE):
        x, angle = r.positions[:, 0], r.positions[:, 1] + np.pi
        smooth = [scipy_signal.savgol_filter(q, 21, 3, k, delta=0.004)[30:-30] for q in (x, angle) for k in (0, 1, 2)]
        _, _, x_ddot, a, a_dot, a_ddot = smooth
        rows.append(np.stack([np.sin(a), np.cos(a) * x_ddot, a_dot], axis=1))
        wanted.append(a_ddot)
    gravity, coupling, _ = np.linalg.lstsq(np.concatenate(rows), np.concatenate(wanted), rcond=None)[0]
    assert -3 * 9.81 / (4 * gravity) == pytest.approx(0.165, abs=0.002)
    assert -3 / (4 * coupling) == pytest.approx(0.165, abs=0.004)
    assert CART_POLE.domain["pole_length"].marginal.support[1] < 0.143
