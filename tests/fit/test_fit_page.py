"""The page of a fit in a browser, and the page of a run whose certificate is void."""

import dataclasses

import pytest

from spota.show.pages import write_fit

pytestmark = pytest.mark.slow


def test_the_page_shows_what_was_learned_on_a_desk_and_on_a_phone(fitted, tmp_path, visit):
    page = write_fit(fitted, tmp_path / "fit.html", "spota fit a.npz --env oscillator")
    seen = visit(page)
    seen.wait("document.querySelectorAll('.plot .main-svg').length >= 1")
    text = seen.page.inner_text("body")
    assert "3 recordings" not in text and "2 recordings of one machine identify" in text
    assert "What the recordings tell" in text and "spota fit a.npz --env oscillator" in text
    assert not seen.complaints and not seen.requests
    small = visit(page, size=(390, 844), color_scheme="dark")
    small.wait("document.querySelectorAll('.plot .main-svg').length >= 1")
    assert small.overflow() <= 0


def test_warnings_stand_on_the_page(fitted, tmp_path):
    worse = dataclasses.replace(fitted, sampled=dataclasses.replace(fitted.sampled, divergences=7))
    text = write_fit(worse, tmp_path / "fit.html", "spota fit").read_text()
    assert "7 transitions diverged" in text and "Read the warnings below" in text
