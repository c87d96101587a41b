"""The look of a page, and how it works in a browser without a network."""

import re
from pathlib import Path

import pytest
from run_directories import BOWL, CART_POLE, NASTY, copied

from browser import DESKTOP, PHONE
from spota.show.pages import story, write, write_comparison

MOST = 8e6
"""Bytes that a page may have."""


def themes() -> list[dict[str, str]]:
    css = (Path(story.__file__).parent / "page.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", css, re.S)
    return [dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in blocks]


def contrast(one: str, other: str) -> float:
    """As WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_both_themes_can_be_read():
    light, dark = themes()
    for theme in (light, {**light, **dark}):
        for ink in ("ink", "quiet", "blue"):
            assert contrast(theme[ink], theme["surface"]) >= 4.5, ink
            assert contrast(theme[ink], theme["page"]) >= 4.5, ink
        for tone in ("good", "bad", "open", "plain"):
            for ink in (tone, "ink", "quiet"):
                assert contrast(theme[ink], theme[f"{tone}-back"]) >= 4.5, (tone, ink)
        for mark in ("blue", "orange", "green", "purple", "grey"):
            assert contrast(theme[mark], theme["surface"]) >= 3, mark


READY = "document.documentElement.dataset.ready === 'yes'"
DRAWN = """[...document.querySelectorAll(".plot")].map((plot) =>
  plot.querySelectorAll(".main-svg .trace, .main-svg .bars").length)"""
SMALLEST = """Math.min(...[...document.querySelectorAll("p, li, td, th, figcaption, summary, dt, dd, pre, small, a")]
  .map((element) => parseFloat(getComputedStyle(element).fontSize)))"""
TEXT_COLOUR = "getComputedStyle(document.querySelector('.plot .xtick text')).fill"


def opened(visit, path: Path, **settings):
    there = visit(path, **settings)
    there.wait(READY)
    return there


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


@pytest.mark.parametrize(
    ("which", "size", "theme"),
    [
        ("certified", DESKTOP, "dark"),
        ("refused", PHONE, "light"),
        ("assessed", DESKTOP, "light"),
        ("trained", PHONE, "dark"),
        ("moving", PHONE, "light"),
    ],
)
def test_in_a_browser_every_plot_is_drawn_and_everything_can_be_read(visit, request, which, size, theme):
    directory, env = request.getfixturevalue(which), {"trained": BOWL, "moving": CART_POLE}.get(which)
    path = write(directory, env, full=which == "trained")
    assert path.stat().st_size < MOST
    there = opened(visit, path, size=size, color_scheme=theme)
    drawn = there.page.evaluate(DRAWN)
    assert drawn and min(drawn) > 0
    assert there.overflow() == 0
    assert there.page.evaluate(SMALLEST) >= 14
    assert there.requests == there.complaints == []


def test_in_a_browser_the_policy_moves(visit, moving):
    there = opened(visit, write(moving, CART_POLE, full=False), size=PHONE)
    there.page.locator(".spota-player").scroll_into_view_if_needed()
    there.wait("Number(document.querySelector('.spota-scrub').value) > 0.02")
    assert there.page.locator(".spota-figure").count() == 3


def test_in_a_browser_the_plots_follow_the_theme_and_the_printer(visit, refused):
    light, dark = (theme["ink"] for theme in themes())
    there = opened(visit, write(refused, full=False), color_scheme="light")
    assert there.page.evaluate(TEXT_COLOUR) == rgb(light)
    there.page.emulate_media(color_scheme="dark")
    there.wait(f"{TEXT_COLOUR} === '{rgb(dark)}'")
    there.page.emulate_media(color_scheme="dark", media="print")
    there.wait(f"{TEXT_COLOUR} === '{rgb(light)}'")
    assert there.complaints == []


def test_in_a_browser_an_unfinished_run_has_a_page_too(visit, refused, tmp_path):
    run = copied(refused, tmp_path / "killed", "iteration|result|certificate|policy")
    there = opened(visit, write(run), size=PHONE)
    assert there.page.locator("h1").inner_text().strip() == "Unfinished"
    assert there.overflow() == 0
    assert there.requests == there.complaints == []


def test_in_a_browser_a_comparison_is_drawn(visit, compared, tmp_path):
    path = write_comparison(compared, tmp_path / "report.html", about="3 domains", command="spota compare a b")
    there = opened(visit, path, size=PHONE, color_scheme="dark")
    assert min(there.page.evaluate(DRAWN)) > 0
    assert there.page.locator("img").count() == 0
    assert there.overflow() == 0
    assert there.requests == there.complaints == []


def test_in_a_browser_nasty_names_are_text(visit, certified, tmp_path):
    run = copied(certified, tmp_path / NASTY.replace("/", ""))
    there = opened(visit, write(run, full=False), size=PHONE)
    assert there.page.locator("img").count() == 0
    assert NASTY in there.page.locator(".about").inner_text()
    assert there.overflow() == 0
    assert there.complaints == []
