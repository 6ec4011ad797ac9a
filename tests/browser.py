"""A browser without a window or a network; tests that need one are skipped where there is none."""

import shutil

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.common.exceptions import NoAlertPresentException  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

__all__ = [
    "By", "Keys", "NoAlertPresentException", "WebDriverWait",
    "errors", "narrow", "needs_chromium", "opened", "scheme", "webdriver", "widen",
]  # fmt: skip

CHROME = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    not (CHROME and DRIVER), reason="no Chromium with its chromedriver on this machine"
)
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,900",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9",
)  # fmt: skip


def opened(profile):
    """Return a browser with a new profile in a folder; whoever asks ends it by `quit`."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROME
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


def errors(driver):
    """Return what went wrong, by the console, since the last look."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def widen(driver):
    """Give the window its size again."""
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def narrow(driver, width):
    """Make the window as narrow as a telephone."""
    sizes = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)


def scheme(driver, name):
    """Ask for light or dark colors."""
    features = [{"name": "prefers-color-scheme", "value": name}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
