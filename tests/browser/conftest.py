"""A browser for the tests of the page: Debian's Chromium, headless, one per module of tests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

#: nothing of these reaches the network, and none needs a screen
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-quic", "--hide-scrollbars"),
    *("--force-device-scale-factor=1", "--window-size=1400,1000"),
)


class Browser:
    """Opens pages, looks at them, and runs what a test asks."""

    def __init__(self, driver: Any, downloads: Path) -> None:
        self.driver, self.downloads = driver, downloads

    def open(self, path: Path | str, choices: str = "") -> None:
        """Open a page anew and wait until it is built."""
        address = path if isinstance(path, str) else path.as_uri()
        self.driver.get("about:blank")
        self.driver.get(address + (f"#{choices}" if choices else ""))
        self.until("return document.documentElement.dataset.ready === '1'")

    def run(self, script: str, *given: Any) -> Any:
        """Return what a script returns."""
        return self.driver.execute_script(script, *given)

    def until(self, script: str, seconds: float = 20) -> Any:
        """Wait until a script returns something true, and return it."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, seconds, 0.03).until(lambda _: self.run(script))

    def find(self, selector: str) -> Any:
        """Return the first element of a selector, in view."""
        found = self.driver.find_element("css selector", selector)
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", found)
        return found

    def click(self, selector: str) -> None:
        """Click on the first element of a selector."""
        self.find(selector).click()

    def keys(self, *keys: str) -> None:
        """Press keys, one after the other, wherever the focus is."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements of a selector, shown or not."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        return list(self.run(script, selector))

    def command(self, name: str, given: dict[str, Any]) -> Any:
        """Send a command of Chromium's own."""
        return self.driver.execute_cdp_cmd(name, given)

    def width(self, width: int) -> None:
        """Give the window a width."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", size)

    def saved(self, name: str) -> Path:
        """Wait for a file that was saved and return it."""
        path = self.downloads / name
        self.wait_for(path)
        return path

    def wait_for(self, path: Path) -> None:
        """Wait until a file is there."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 20, 0.05).until(lambda _: path.exists() and path.stat().st_size)

    def complaints(self) -> list[str]:
        """Return what stands on the console, and forget it."""
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
    """The module that makes bundles, which stands beside this file."""
    place = Path(__file__).with_name("bundles.py")
    spec = spec_from_file_location("karat_browser_bundles", place)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def write_page() -> Callable[..., Path]:
    """Write the page of a bundle that went through JSON, as any bundle does."""
    from karat.report.page import make_page

    def write(bundle: dict[str, Any], path: Path, live: str | bool = False) -> Path:
        path.write_text(make_page(json.loads(json.dumps(bundle)), live), encoding="utf-8")
        return path

    return write
