"""A real browser for tests of pages; they are skipped where there is none.

On Debian: `apt-get install chromium chromium-driver`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

needs_browser = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="no chromium and chromedriver on the PATH"
)

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

OWN_OF_THE_BROWSER = ("data:", "chrome://", "chrome-untrusted://")
"""How addresses begin that nobody but the browser serves: those of its new tab among them."""


@contextmanager
def opened_browser(profile: Path) -> Iterator[Any]:
    """Return a browser with a separate profile, which logs messages and fetches."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = selenium.ChromeOptions()
    options.binary_location = BROWSER
    for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = selenium.Chrome(options=options, service=selenium.ChromeService(executable_path=DRIVER))
    try:
        yield opened
    finally:
        opened.quit()


def fetched(driver: Any) -> list[str]:
    """Addresses that pages asked for since the last look, without those of the browser's own new tab."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [url for url in asked if not url.startswith(OWN_OF_THE_BROWSER)]


def resize(driver: Any, width: int, scheme: str, height: int = 900) -> None:
    """Give the window a size and the system a colour scheme."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def contrast(driver: Any, where: str, what: str = "color", behind: str = "body") -> float:
    """Contrast of a colour to the one behind it by WCAG 2.1."""
    ink, paper = _luminance(driver, where, what), _luminance(driver, behind, "backgroundColor")
    return (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)


def _luminance(driver: Any, where: str, what: str) -> float:
    """Relative luminance by WCAG 2.1 of a colour as the browser computes it: `rgb(r, g, b)`."""
    colour = driver.execute_script(f"return getComputedStyle(document.querySelector('{where}')).{what}")
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
