"""The README's picture of the explorer: the shipped model writes 445+555, as far as A3.

Run it as `make screenshots`; it needs Chromium.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from browser import find_chromium
from playwright.sync_api import sync_playwright

import carryscope

SHOWN, WRITTEN = "#explorer?q=445+555", 3
WIDTH, HEIGHT = 1280, 1200
OUT = Path(__file__).parent / "explorer.png"


def main() -> None:
    """Write docs/explorer.png."""
    executable = find_chromium()
    if executable is None:
        sys.exit("There is no Chromium to take pictures with. Install it: apt-get install chromium")
    run = carryscope.load()
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "explorer.html"
        run.explorer().save(file)
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce"
        )
        page.goto(file.as_uri() + SHOWN)
        page.wait_for_selector(".carryscope-explorer[aria-busy=false]")
        for _ in range(WRITTEN):
            page.locator("[data-part=step]").click()
        bottom = page.locator(".ask").bounding_box()
        assert bottom is not None
        height = bottom["y"] + bottom["height"] + 16
        page.screenshot(path=OUT, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
        browser.close()
    print(OUT)


if __name__ == "__main__":
    main()
