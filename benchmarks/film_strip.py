"""Pictures of `plan serve` in Chromium, one a step, and how long the page takes to answer.

python benchmarks/film_strip.py build/film

First load, a slider moved, progress, comparison, saved scenario, a phone, a dark screen. The fleet is a copy
of scenarios/quarterly.yaml. Needs selenium, chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

SCENARIO: Final = Path(__file__).parents[1] / "scenarios" / "quarterly.yaml"
WIDTHS: Final = {"desk": (1300, 900), "phone": (390, 844)}
"""Windows that pictures are taken of. [pixels]"""
TOO_LONG_S: Final = 300.0
SETTLED_S: Final = 0.5
"""Time for a page to be drawn before its picture. [s]"""
RIGHT: Final = "\ue014"
"""The arrow key as WebDriver has it."""
STEPS_RIGHT: Final = 20


@contextmanager
def served(fleet: Path) -> Iterator[str]:
    """Serve the page of a fleet file, and give its address."""
    command = [sys.executable, "-m", "fleetplan.planner", "serve", fleet.name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=fleet.parent)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


@contextmanager
def browser() -> Iterator[Any]:
    """Open Chromium without a window, with a profile of its own."""
    from selenium import webdriver  # noqa: PLC0415 - a test tool

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    with TemporaryDirectory() as profile:
        for argument in ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"):
            options.add_argument(argument)
        service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
        opened = webdriver.Chrome(options=options, service=service)
        try:
            yield opened
        finally:
            opened.quit()


class Film:
    """A browser on the page that takes pictures."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver = driver
        self.folder = folder
        self.taken = 0

    def resize(self, window: str, scheme: str = "light") -> None:
        """Give the window a size and a colour scheme."""
        width, height = WIDTHS[window]
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def picture(self, name: str) -> None:
        """Take a picture of the window."""
        time.sleep(SETTLED_S)
        self.taken += 1
        self.driver.save_screenshot(str(self.folder / f"{self.taken}-{name}.png"))

    def run(self, script: str) -> Any:
        """Run a line of JavaScript."""
        return self.driver.execute_script(script)

    def is_shown(self, selector: str) -> bool:
        """Whether something is shown."""
        return bool(self.run(f"return document.querySelector({selector!r})?.checkVisibility() ?? false"))

    def wait(self, true: Callable[[], object]) -> float:
        """Wait for something, and say for how long. [s]"""
        began = time.monotonic()
        while not true():
            if time.monotonic() - began > TOO_LONG_S:
                raise TimeoutError
            time.sleep(0.02)
        return time.monotonic() - began


def shoot(film: Film, address: str) -> dict[str, float]:
    """Take all pictures; return the seconds that the page took."""
    took = {}
    film.resize("desk")
    film.driver.get(address)
    took["first load to the first report"] = film.wait(lambda: film.is_shown("#report"))
    film.picture("first-load")
    slider = film.driver.find_element("css selector", "[data-name=assistant] input[type=range]")
    slider.send_keys(RIGHT * STEPS_RIGHT)
    film.picture("slider-moved")
    took |= _planned(film, "a change of demand", picture="progress")
    film.picture("planned")
    film.driver.find_element("css selector", "[data-button^=compare]").click()
    took["comparison"] = film.wait(lambda: film.is_shown("#report"))
    film.picture("comparison")
    film.driver.find_element("css selector", "#save input").send_keys("more-assistant")
    film.driver.find_element("css selector", "#save button").click()
    film.wait(lambda: film.run("return document.getElementById('done').textContent"))
    film.picture("saved-scenario")
    for window, scheme in (("phone", "light"), ("desk", "dark")):
        film.resize(window, scheme)
        film.run("document.getElementById('plans').scrollIntoView()")
        film.picture(f"{window}-{scheme}")
    film.resize("desk")
    film.run("document.getElementById('changes').reset()")
    film.run("document.querySelector('[data-hardware=MI300X]').click()")
    took |= _planned(film, "hardware off")
    film.run("document.getElementById('changes').reset()")
    film.run("document.querySelector('[data-label=\"assistant TTFT\"]').value = 300")
    return took | _planned(film, "a change of a latency target")


def _planned(film: Film, what: str, picture: str = "") -> dict[str, float]:
    made = film.run("return document.querySelectorAll('#made tr').length")
    film.run("document.querySelector('button.main').click()")
    first_s = film.wait(lambda: film.is_shown("#solving"))
    first_s += film.wait(lambda: film.run("return document.getElementById('best').textContent") != "none yet")
    if picture:
        film.picture(picture)
    rest_s = film.wait(
        lambda: (
            film.run("return document.querySelectorAll('#made tr').length") > made
            and film.is_shown("#report")
        )
    )
    return {f"{what} to the first plan": first_s, f"{what} to its report": first_s + rest_s}


def main(arguments: Sequence[str] | None = None) -> int:
    """Take the pictures, and print the seconds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the pictures go")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place:
        fleet = shutil.copy(SCENARIO, place)
        with served(Path(fleet)) as address, browser() as driver:
            took = shoot(Film(driver, folder), address)
    for what, seconds in took.items():
        print(f"{seconds:6.1f} s  {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
