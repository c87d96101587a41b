"""The page about a run on somebody else's simulator: its pictures, or curves and why."""

import jax
from run_directories import trained_run, words_of

from drawn_point_mass import DrawnPointMass
from spota import policies
from spota.show.pages import write


def page(directory, env):
    return write(trained_run(directory, env, policies.fnn(jax.random.key(0), env, (2,))), env, full=False)


def raising(masses):
    del masses
    raise OSError("no such screen")


def test_the_page_has_the_pictures_of_the_simulator(tmp_path):
    path = page(tmp_path / "run", DrawnPointMass(spread=0.2))
    assert "The pictures are its own simulator's." in words_of(path)
    text = path.read_text("utf-8")
    assert text.count('"kind":"photographs"') >= 3 and 'data-scene="film"' in text


def test_the_page_says_why_there_are_none(tmp_path):
    words = words_of(page(tmp_path / "run", DrawnPointMass(spread=0.2, paint=raising)))
    assert "no picture of the machine, because drawing it raised OSError: no such screen." in words


def test_in_a_browser_the_page_may_show_them(tmp_path, visit):
    there = visit(page(tmp_path / "run", DrawnPointMass(spread=0.2)))
    there.page.evaluate("document.querySelector('#motion').scrollIntoView()")
    there.wait("Number(document.querySelector('.spota-scrub').value) > 0.2")
    colour = "[...document.querySelector('.spota-scene').getContext('2d').getImageData(0, 0, 999, 999).data]"
    there.wait(f"{colour}.some((v, i, all) => i % 4 === 0 && v > 180 && all[i + 1] < 110 && all[i + 3])")  # red
    assert not [words for words in there.complaints if words.startswith("error")]
