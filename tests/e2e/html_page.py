#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTML page in a browser: nothing sticks out of a telephone's window. Skipped without Chromium."""
import json
import re
import shutil
import subprocess
import sys

import e2e

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom")


def works(browser):
    try:
        done = subprocess.run([browser, *OPTIONS, "about:blank"], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return False
    return "<html" in done.stdout


if BROWSER is None or not works(BROWSER):
    print("skipped: no Chromium that runs here")
    sys.exit(e2e.SKIPPED)
e2e.require(e2e.KSHIM)
CASES = ("no-image-for-arch", "several-findings", "hostile", "two-gpus")
WIDTH = 360

# The page's own policy forbids scripts; the frame around it asks.
FRAME = """<!DOCTYPE html><body><iframe src="page.html" width="%d" height="900"></iframe><script>
onload = () => {
  const page = document.querySelector("iframe").contentDocument;
  const wide = element => [element.scrollWidth, element.clientWidth];
  const facts = [...page.querySelectorAll("table")].filter(table => !table.tHead).map(table => wide(table.parentElement));
  document.body.innerText = "MEASURED" + JSON.stringify({page: wide(page.documentElement), facts: facts}) + "END";
};
</script>"""


class Page(e2e.Case):
    def measured(self, page):
        (self.folder / "page.html").write_text(page)
        (self.folder / "frame.html").write_text(FRAME % WIDTH)
        done = subprocess.run([BROWSER, *OPTIONS[:-1], f"--user-data-dir={self.folder / 'profile'}", OPTIONS[-1],
                               (self.folder / "frame.html").as_uri()], capture_output=True, text=True, timeout=60, check=False)
        found = re.search("MEASURED(.*)END</body>", done.stdout)
        self.assertIsNotNone(found, done.stdout[-500:] + done.stderr[-500:])
        return json.loads(found.group(1))

    def test_a_narrow_window(self):
        page = self.kshim("analyze", "--format", "html", *(e2e.SOURCE / "tests" / "golden" / case for case in CASES)).stdout
        measured = self.measured(page)
        self.assertLessEqual(*measured["page"])
        self.assertGreater(len(measured["facts"]), 3)
        for content, room in measured["facts"]:
            self.assertLessEqual(content, room, "a table of facts is wider than the window")


if __name__ == "__main__":
    e2e.main()
