"""A headless Chromium for the tests of the page, one per test module."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from ..skips import original_file

#: no network, no screen
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--window-size=1400,1000",
)

#: how often an element may move before a click
MOVES = 5


class Browser:
    """Opens pages, runs scripts and reads the result."""

    def __init__(self, driver: Any, downloads: Path) -> None:
        self.driver, self.downloads = driver, downloads

    def open(self, path: Path | str, choices: str = "") -> None:
        """Open a page and wait until it is built."""
        address = path if isinstance(path, str) else path.as_uri()
        self.driver.get("about:blank")
        self.driver.get(address + (f"#{choices}" if choices else ""))
        self.until("return document.documentElement.dataset.ready === '1'")

    def run(self, script: str, *given: Any) -> Any:
        """Return what a script returns."""
        return self.driver.execute_script(script, *given)

    def until(self, script: str, seconds: float = 300) -> Any:
        """Wait until a script returns something true, and return it."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, seconds, 0.03).until(lambda _: self.run(script))

    def find(self, selector: str) -> Any:
        """Return the first element of a selector, in view."""
        found = self.driver.find_element("css selector", selector)
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", found)
        return found

    def click(self, selector: str) -> None:
        """Click on the first element of a selector, again if it moved while the page was drawn."""
        from selenium.common.exceptions import ElementClickInterceptedException

        for _ in range(MOVES):
            with contextlib.suppress(ElementClickInterceptedException):
                return self.find(selector).click()
        self.find(selector).click()

    def keys(self, *keys: str) -> None:
        """Press keys, one after the other, wherever the focus is."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def choose(self, element: str, value: Any) -> None:
        """Choose an option of a selection list, by the id of the list."""
        script = "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
        self.run(f"{script} s.dispatchEvent(new Event('change'))", element, value)

    def count(self, selector: str) -> int:
        """Return the number of elements of a selector."""
        return int(self.run("return document.querySelectorAll(arguments[0]).length", selector))

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements of a selector, shown or not."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        return list(self.run(script, selector))

    def command(self, name: str, given: dict[str, Any]) -> Any:
        """Send a command of the Chrome DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, given)

    def width(self, width: int) -> None:
        """Give the window a width."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", size)

    def saved(self, name: str) -> Path:
        """Wait for a saved file and return its path."""
        from selenium.webdriver.support.ui import WebDriverWait

        path = self.downloads / name
        WebDriverWait(self.driver, 300, 0.05).until(lambda _: path.exists() and path.stat().st_size)
        return path

    def console_messages(self) -> list[str]:
        """Return and clear the messages of the console."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    places = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, place in places.items() if place is None]
    if missing:
        pytest.skip(f"not installed: {' and '.join(missing)}")
    options = webdriver.ChromeOptions()
    options.binary_location = places["chromium"]
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    downloads = tmp_path_factory.mktemp("downloads")
    driver = webdriver.Chrome(options, webdriver.ChromeService(places["chromedriver"]))
    allowed = {"behavior": "allow", "downloadPath": str(downloads)}
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", allowed)
    try:
        yield Browser(driver, downloads)
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def bundles() -> Any:
    """Return the module bundles.py."""
    place = Path(__file__).with_name("bundles.py")
    spec = spec_from_file_location("karat_browser_bundles", place)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def write_page() -> Callable[..., Path]:
    """Write the page of a bundle after a round trip through JSON."""
    from karat.reporting.page import make_page

    def write(bundle: dict[str, Any], path: Path, live: str | bool = False) -> Path:
        path.write_text(make_page(json.loads(json.dumps(bundle)), live), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the script of axe-core, or skip."""
    return original_file("axe").read_text(encoding="utf-8")
