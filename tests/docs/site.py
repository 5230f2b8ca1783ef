#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents as a web site: it builds, each cause has its page with real output, nothing is asked of another host, and in a real
browser no page is wider than a telephone and every text can be read in both themes."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import browser

SOURCE = pathlib.Path(os.environ["KSHIM_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["KSHIM_BUILD_DIR"])
SITE = pathlib.Path(tempfile.mkdtemp(prefix="kshim-site-")) / "site"

# Of every page how wide it is on a telephone, and how many titles it has. Of some, both themes: texts with less than WCAG's contrast, and code
# that is wider than its column.
MEASURE = """(async () => {
const numbers = color => color.match(/[\\d.]+/g).map(Number);
const light = color => color.map(part => part / 255).map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
  .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
const over = (top, under) => [0, 1, 2].map(at => under[at] + (top[at] - under[at]) * (top[3] ?? 1));
function weak(view) {
  const ground = element => {
    const color = numbers(view.getComputedStyle(element).backgroundColor);
    const under = (color[3] ?? 1) === 1 ? color : element.parentElement ? ground(element.parentElement) : [255, 255, 255];
    return over(color, under);
  };
  const found = [];
  let texts = 0;
  for (const element of view.document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || ["SCRIPT", "STYLE"].includes(element.tagName) || !element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const style = view.getComputedStyle(element), paper = ground(element);
    const [one, other] = [light(over(numbers(style.color), paper)), light(paper)].sort((a, b) => a - b);
    ++texts;
    if ((other + 0.05) / (one + 0.05) < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) found.push(element.outerHTML.slice(0, 100));
  }
  return [texts, found];
}
  const widths = {}, contrast = {}, scrolls = {};
  const open = async (page, width) => {
    const frame = document.createElement("iframe");
    frame.width = width; frame.height = 900; frame.src = page;
    await new Promise(done => { frame.onload = done; document.body.append(frame); });
    return frame;
  };
  for (const page of %s) {
    const frame = await open(page, 400), root = frame.contentDocument.documentElement;
    widths[page] = [root.scrollWidth, frame.contentDocument.querySelectorAll("h1").length];
    frame.remove();
  }
  for (const page of %s) {
    const frame = await open(page, 1280), still = frame.contentDocument.createElement("style");
    still.textContent = "* { transition: none !important }";
    frame.contentDocument.head.append(still);
    for (const theme of ["default", "slate"]) {
      frame.contentDocument.body.dataset.mdColorScheme = theme;
      contrast[page + " " + theme] = weak(frame.contentWindow);
    }
    scrolls[page] = [...frame.contentDocument.querySelectorAll("pre code")].filter(code => code.scrollWidth > code.clientWidth).map(code => code.textContent.slice(0, 80));
    frame.remove();
  }
  return [widths, contrast, scrolls];
})()"""
READ = ("index.html", "messages/no-kernel-image-is-available.html", "comparison.html", "scan.html")


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

    @unittest.skipUnless(browser.PROGRAM, "no Chromium: Debian's package is `chromium`")
    def test_in_a_browser(self):
        pages = [str(page.relative_to(SITE)) for page in sorted(SITE.rglob("*.html")) if page.name != "404.html"]
        (SITE / "measure.html").write_text("<!DOCTYPE html><meta charset=utf-8><body>")
        with browser.Browser(240) as chromium:
            widths, contrast, scrolls = chromium.value((SITE / "measure.html").as_uri(), MEASURE % (json.dumps(pages), json.dumps(READ)))
        self.assertEqual(set(widths), set(pages))
        self.assertEqual({page: width for page, (width, _) in widths.items() if width > 400}, {})
        self.assertEqual({page: titles for page, (_, titles) in widths.items() if titles != 1}, {})
        self.assertEqual(len(contrast), 2 * len(READ))
        self.assertEqual(scrolls, {page: [] for page in READ})  # on a screen of 1280
        for page, (texts, weak) in contrast.items():
            self.assertGreater(texts, 50, page)
            self.assertEqual(weak, [], page)


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
