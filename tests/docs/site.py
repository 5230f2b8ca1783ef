#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents as a web site: it builds, each cause has its page with real output, nothing is asked of another host, and in a real
browser no page is wider than a telephone."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["KSHIM_BUILD_DIR"])
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SITE = pathlib.Path(tempfile.mkdtemp(prefix="kshim-site-")) / "site"

FRAME = """<!DOCTYPE html><meta charset=utf-8><body><script>
(async () => {
  const out = {};
  for (const page of %s) {
    const frame = document.createElement("iframe");
    frame.width = 400; frame.height = 900; frame.src = page;
    await new Promise(done => { frame.onload = done; document.body.append(frame); });
    const root = frame.contentDocument.documentElement;
    out[page] = [root.scrollWidth, frame.contentDocument.querySelectorAll("h1").length];
    frame.remove();
  }
  document.body.innerText = "MEASURED" + JSON.stringify(out) + "END";
})();
</script>"""


def causes():
    text = (SOURCE / "analyzer/core/causes.def").read_text()
    return re.findall(r'^KSHIM_CAUSE\(\w+, "([a-z-]+)"', text, re.M)


class Site(unittest.TestCase):
    def test_each_cause_has_a_page_with_what_kshim_prints(self):
        self.assertGreater(len(causes()), 30)
        for cause in causes():
            text = (SITE / "causes" / f"{cause}.html").read_text()
            self.assertIn("What kshim prints", text, cause)

    def test_each_message_is_one_that_explain_knows(self):
        pages = sorted((SITE / "messages").glob("*.html"))
        self.assertGreater(len(pages), 10)
        for page in pages:
            if page.name != "index.html":
                cause = re.search(r'href="\.\./causes/([a-z-]+)\.html"', page.read_text().split("What fixes it", 1)[1]).group(1)
                printed = page.read_text().split("What kshim prints", 1)[1]
                self.assertIn(cause, printed, page.name)

    def test_no_other_host_is_asked(self):
        for page in SITE.rglob("*.html"):
            for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page.read_text()):
                self.assertNotRegex(tag, r'(?:src|href)="?(?:https?:)?//', page)

    @unittest.skipUnless(BROWSER, "no Chromium: Debian's package is `chromium`")
    def test_no_page_is_wider_than_a_telephone(self):
        pages = [str(page.relative_to(SITE)) for page in sorted(SITE.rglob("*.html")) if page.name != "404.html"]
        (SITE / "measure.html").write_text(FRAME % json.dumps(pages))
        with tempfile.TemporaryDirectory() as profile:
            done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                                   "--virtual-time-budget=120000", f"--user-data-dir={profile}", "--dump-dom",
                                   (SITE / "measure.html").as_uri()], capture_output=True, text=True, timeout=300, check=False)
        measured = json.loads(re.search("MEASURED(.*)END", done.stdout, re.S).group(1))
        self.assertEqual(set(measured), set(pages))
        wide = {page: width for page, (width, _) in measured.items() if width > 400}
        self.assertEqual(wide, {})
        self.assertEqual({page: count for page, (_, count) in measured.items() if count != 1}, {})


if __name__ == "__main__":
    made = subprocess.run([sys.executable, str(SOURCE / "tools/docs_site"), "--offline", "--build", str(BUILD), "--site", str(SITE)],
                          capture_output=True, text=True, check=False)
    if made.returncode == 77:
        print(made.stdout)
        sys.exit(77)
    if made.returncode != 0:
        sys.exit(f"tools/docs_site: {made.stdout}{made.stderr}")
    try:
        unittest.main(verbosity=1)
    finally:
        shutil.rmtree(SITE.parent)
