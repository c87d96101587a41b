"""The page of a comparison."""

import dataclasses

from run_directories import NASTY, Words, words_of

from spota.show.pages import write_comparison


def test_a_comparison_names_the_best_and_shows_every_policy(compared, tmp_path):
    path = write_comparison(compared, tmp_path / "a" / "report.html", about="3 domains", command="spota compare a b")
    text = words_of(path)
    assert "2 policies compared mine earns most: 2.33 of at most 5 on average over 3 domains" in text
    assert f"mine is better than {NASTY} by 1.33 [0.5, 2]." in text
    assert "spota compare a b" in text
    assert "cannot be told apart" not in text.split("What they earn")[0]
    assert "img" not in Words(path.read_text()).tags


def test_a_comparison_says_with_whom_the_best_could_change_places(compared, tmp_path):
    close = dataclasses.replace(compared.differences[0], low=-0.1)
    result = dataclasses.replace(compared, differences=(close,))
    text = words_of(write_comparison(result, tmp_path / "report.html", about="3 domains", command="spota compare"))
    assert f"It cannot be told apart from {NASTY}." in text
