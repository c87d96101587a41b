"""Pages in a real browser: headless Chromium opens them from disk and tells what they did."""

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE, DESKTOP = (390, 844), (1280, 900)
PATIENCE = 60_000  # milliseconds that a page may take on a busy machine
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@dataclass
class Visit:
    """An open page, what it wrote to the console, and what it asked for besides itself."""

    page: "Page"
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def wait(self, condition: str) -> None:
        """Until this JavaScript expression is true; asked from outside, because a page may forbid to evaluate text."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not self.page.evaluate(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {condition}; the page said {self.complaints}")
            self.page.wait_for_timeout(50)

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


Visitor = Callable[..., Visit]


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Chromium as the system has it; nothing is downloaded. It ends with the module, and so does its event loop."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no browser: `make browser` installs Debian's package chromium")
    with pytest.importorskip("playwright.sync_api").sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=2 * PATIENCE)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: "Browser") -> Iterator[Visitor]:
    """Open a file as a person would: `visit(path, size=PHONE, color_scheme="dark")`, in the words of playwright."""
    contexts = []

    def opened(path: Path, size: tuple[int, int] = DESKTOP, **settings) -> Visit:
        contexts.append(browser.new_context(viewport={"width": size[0], "height": size[1]}, **settings))
        there = Visit(contexts[-1].new_page())
        there.page.on("console", lambda message: there.complaints.append(f"{message.type}: {message.text}"))
        there.page.on("pageerror", lambda error: there.complaints.append(f"error: {error}"))
        there.page.on("request", lambda request: there.requests.append(request.url))
        there.page.goto(path.as_uri(), timeout=PATIENCE)
        there.requests.remove(path.as_uri())
        return there

    yield opened
    for context in contexts:
        context.close()
