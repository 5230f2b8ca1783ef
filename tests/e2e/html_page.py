#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTML page in a browser: nothing of a report runs, the filter and the theme work, text can be read in light and dark, nothing
sticks out of a telephone's window, a large scan stays usable. Skipped without Chromium (docs/hacking.md)."""
import json
import re
import sys

import browser
import e2e

e2e.require(e2e.KSHIM)
GOLDEN = e2e.SOURCE / "tests" / "golden"
CASES = ("no-image-for-arch", "several-findings", "hostile", "two-gpus")
WIDTH = 360
# What would run, load or change the page if any of it were taken for markup.
EVIL = ("<script>document.title='EVIL'</script>", "</style><script>document.title='EVIL'</script>", "</title></script><svg onload=\"document.title='EVIL'\">",
        "\" onmouseover=\"document.title='EVIL'\" x=\"", "' autofocus onfocus='document.title=\"EVIL\"' x='", "javascript:document.title='EVIL'",
        "<img src=x onerror=\"document.title='EVIL'\">", "</details></section><base href=//evil.example>", "-->]]><!--",
        "\u202etxt.exe\u2066\x1b[2J\x00\u0085\u2028", "<a href=javascript:document.title='EVIL'>x</a>", "<form><input formaction=javascript:0>")

# A page that holds ours in a frame, does something to it and says what it saw. The page's own policy forbids foreign scripts.
FRAME = """<!DOCTYPE html><meta charset=utf-8><body><iframe src="page.html" width="%d" height="900"></iframe>"""
SCRIPT = """(async () => {
  const view = document.querySelector("iframe").contentWindow, page = view.document;
  const shown = selector => [...page.querySelectorAll(selector)].filter(element => element.checkVisibility()).length;
  const wait = time => new Promise(done => setTimeout(done, time));
  %s
})()"""

# WCAG's ratio for every element with text of its own, and the worst of them; checkVisibility() leaves folded parts out.
CONTRAST = """
  const numbers = color => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(part => part / 255).map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = element => {
    for (; element; element = element.parentElement) {
      const color = numbers(view.getComputedStyle(element).backgroundColor);
      if (color.length < 4 || color[3] !== 0) return color;
    }
    return [255, 255, 255];
  };
  for (const details of page.querySelectorAll("details")) details.open = true;
  const seen = {};
  for (const name of ["light", "dark"]) {
    while (page.documentElement.dataset.theme !== name) page.getElementById("theme").click();
    let worst = [99, ""], count = 0;
    for (const element of page.body.querySelectorAll("*")) {
      const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
      if (!own || element.tagName === "SCRIPT" || !element.checkVisibility()) continue;
      const [one, other] = [light(numbers(view.getComputedStyle(element).color)), light(ground(element))].sort((a, b) => a - b);
      const ratio = (other + 0.05) / (one + 0.05);
      ++count;
      if (ratio < worst[0]) worst = [ratio, element.outerHTML.slice(0, 100)];
    }
    seen[name] = {worst: worst, count: count, paper: view.getComputedStyle(page.body).backgroundColor};
  }
  return seen;"""

FILTER = """
  const filter = page.getElementById("filter");
  const state = async text => {
    filter.value = text;
    filter.dispatchEvent(new Event("input"));
    await wait(1000);
    return {findings: shown(".finding"), rows: shown(".list > tbody > tr"), said: page.getElementById("said").textContent};
  };
  const out = {};
  for (const text of %s) out[text] = await state(text);
  return out;"""


class Page(e2e.Case):
    def dom(self, page):
        """The page as it is after its scripts, and those of an enemy, had time to run."""
        path = self.folder / "page.html"
        path.write_text(page)
        return chromium.value(path.as_uri(), "new Promise(done => setTimeout(() => done(document.documentElement.outerHTML), 500))")

    def measured(self, page, script, width=1000):
        (self.folder / "page.html").write_text(page)
        (self.folder / "frame.html").write_text(FRAME % width)
        return chromium.value((self.folder / "frame.html").as_uri(), SCRIPT % script)

    def analysis_page(self, *paths):
        return self.kshim("analyze", "--format", "html", *(paths or [GOLDEN / case for case in CASES])).stdout

    def hostile_report(self):
        """A golden report with a string of an enemy behind each of its strings, in turn; of an enum's only the last."""
        keep = {"type", "schema", "kind", "arch", "isa", "compute_capability", "cuda_version", "need", "stage", "layer", "time"}
        count = 0

        def changed(value, key=""):
            nonlocal count
            if isinstance(value, str) and key not in keep:
                count += 1
                return value + EVIL[count % len(EVIL)]
            if isinstance(value, list):
                return [changed(item, key) for item in value]
            if isinstance(value, dict):
                return {name: changed(item, name) for name, item in value.items()}
            return value

        for shift in range(len(EVIL)):
            count = shift
            records = [json.loads(line) for line in (GOLDEN / "several-findings" / "report.jsonl").read_text().splitlines()]
            path = self.folder / f"{shift}.jsonl"
            path.write_text("".join(json.dumps(changed(record)) + "\n" for record in records))
            yield path

    def check_inert(self, page):
        dom = self.dom(page)
        # assertTrue: a failure does not print the whole page.
        self.assertTrue('data-ready="yes"' in dom, "our own script did not run: what follows would prove nothing")
        self.assertRegex(re.search("<title>[^<]*", dom).group(), "<title>kshim")
        self.assertEqual(len(re.findall("<script", dom)), 1)
        self.assertEqual(len(re.findall("<style", dom)), 1)
        tags = re.findall(r"<([a-z][a-z0-9]*)((?:\s+[^\s=>]+(?:=\"[^\"]*\")?)*)\s*>", dom)
        self.assertFalse({tag for tag, _ in tags} & {"img", "svg", "base", "form", "iframe", "object", "link"})
        for tag, attributes in tags:
            for name, _, value in re.findall(r"\s([^\s=>]+)(=\"([^\"]*)\")?", attributes):
                self.assertFalse(name.startswith("on") or name in ("src", "style", "formaction", "autofocus"), f"<{tag} {name}>")
                if name == "href":
                    self.assertTrue(value.startswith("#"), value)

    def test_nothing_of_a_report_runs(self):
        page = self.analysis_page(*self.hostile_report())
        self.assertGreater(page.count("document.title="), 100, "the enemy's texts did not reach the page")
        self.check_inert(page)

    def test_nothing_of_a_file_name_runs(self):
        for number, text in enumerate(EVIL):
            name = re.sub("[/\0]", "_", text)
            (self.folder / f"{number}{name}.ptx").write_text(ptx([f"k{number}"]))
        page = self.kshim("scan", "--kernels", "--target", "7.5,8.0", "--format", "html", self.folder).stdout
        self.assertGreater(page.count("document.title="), 10)
        self.check_inert(page)

    def test_the_policy_forbids_what_is_not_ours(self):
        """The second wall: markup that were not escaped would still not run, load or be styled."""
        page = self.analysis_page()
        evil = ("<script>document.title='EVIL'</script><img src=x onerror=\"document.title='EVIL'\"><svg onload=\"document.title='EVIL'\"></svg>"
                "<style>#main{display:none}</style><p id=styled style=\"display:none\">")
        dom = self.dom(page.replace("<h1>", evil + "<h1>"))
        self.assertTrue('data-ready="yes"' in dom and "<title>EVIL" not in dom)
        self.assertEqual(self.measured(page.replace("<h1>", evil + "<h1>"), "return shown('#main, #styled');"), 2)
        open_page = re.sub(r"<meta http-equiv=[^>]*>", "", page).replace("<h1>", evil + "<h1>")
        self.assertTrue("<title>EVIL" in self.dom(open_page), "without the policy it would run: else this shows nothing")

    def test_the_page_is_whole_without_scripts(self):
        page = re.sub(r"<script>.*</script>", "", self.analysis_page(), flags=re.DOTALL)
        seen = self.measured(page, """for (const details of page.querySelectorAll("details")) details.open = true;
          return {findings: shown(".finding"), commands: shown("pre"), controls: shown("#filter, #theme, .copy")};""")
        self.assertGreater(seen["findings"], 3)
        self.assertGreater(seen["commands"], 3)
        self.assertEqual(seen["controls"], 0, "controls that can do nothing are shown")

    def test_filter(self):
        words = ["", "libfilter.so", "LIBFILTER  driver", "nothing has this", ""]
        seen = self.measured(self.analysis_page(), FILTER % json.dumps(words[:-1]))
        whole = seen[""]
        self.assertGreater(whole["findings"], 3)
        self.assertEqual(whole["said"], "")
        self.assertEqual(seen["libfilter.so"]["findings"], 1)
        self.assertLess(seen["libfilter.so"]["rows"], whole["rows"])
        self.assertIn(f"1 of {whole['findings']} findings", seen["libfilter.so"]["said"])
        self.assertEqual(seen["LIBFILTER  driver"]["findings"], 1)
        self.assertEqual(seen["nothing has this"]["findings"], 0)

    def test_copy_buttons_and_anchors(self):
        seen = self.measured(self.analysis_page(), """
          const copies = [...page.querySelectorAll(".commands")];
          view.location.hash = "#finding-2";
          await wait(500);
          return {copies: copies.every(each => each.querySelector("button.copy") && each.querySelector("code").textContent), count: copies.length,
            target: page.querySelector(".finding:target").id, open: page.querySelector("#finding-2 > details").open,
            dead: [...page.querySelectorAll("a")].filter(a => !page.getElementById(a.getAttribute("href").slice(1))).length,
            twice: [...page.querySelectorAll("[id]")].length - new Set([...page.querySelectorAll("[id]")].map(e => e.id)).size,
            named: [...page.querySelectorAll("[role=group], nav, button, input")].every(e => e.ariaLabel || e.textContent || e.labels?.length)};""")
        self.assertTrue(seen["copies"] and seen["count"] > 3, seen)
        self.assertEqual((seen["target"], seen["open"]), ("finding-2", True))
        self.assertEqual((seen["dead"], seen["twice"], seen["named"]), (0, 0, True), seen)

    def test_text_can_be_read_in_light_and_in_the_dark(self):
        seen = self.measured(self.analysis_page(), CONTRAST)
        self.assertNotEqual(seen["light"]["paper"], seen["dark"]["paper"])
        for name, found in seen.items():
            self.assertGreater(found["count"], 50)
            self.assertGreaterEqual(found["worst"][0], 4.5, f"{name}: {found['worst']}")

    def test_a_narrow_window(self):
        measured = self.measured(self.analysis_page(), """const wide = element => [element.scrollWidth, element.clientWidth];
          const facts = [...page.querySelectorAll(".finding:first-of-type table.facts, #finding-1 table.facts")].map(table => wide(table.parentElement));
          return {page: wide(page.documentElement), facts: facts};""", WIDTH)
        self.assertLessEqual(*measured["page"])
        self.assertGreater(len(measured["facts"]), 0)
        for content, room in measured["facts"]:
            self.assertLessEqual(content, room, "a table of facts is wider than the window")

    def test_the_fix_is_in_the_first_screen(self):
        for width in (1280, 400):
            for what, page in {"report": self.analysis_page(GOLDEN / "no-image-for-arch"), "many reports": self.analysis_page(GOLDEN / "several-findings", GOLDEN / "two-gpus"),
                               "scan": self.scan_page(6, "7.5,8.6,9.0,12.0")}.items():
                with self.subTest(width=width, page=what):
                    seen = self.measured(page, """const box = page.querySelector(".finding .commands").getBoundingClientRect();
                      return [box.top, box.width];""", width)
                    self.assertLess(seen[0], 800)
                    self.assertGreater(seen[1], width / 2, "the command is not to be read")

    def test_one_card_a_file(self):
        seen = self.measured(self.scan_page(3, "5.2,6.1,7.5"), """const cards = [...page.querySelectorAll(".finding")];
          view.location.hash = "#finding-3";
          await wait(500);
          return {cards: cards.length, further: page.querySelectorAll(".finding .further").length, open: cards.map(card => card.querySelector("details").open),
            shown: page.getElementById("finding-3").checkVisibility()};""")
        self.assertEqual((seen["cards"], seen["further"]), (3, 0))
        self.assertEqual((seen["open"], seen["shown"]), ([True, False, True], True), "the first is open, and the one that the address names")

    def test_no_architecture_is_off_the_screen(self):
        page = self.scan_page(4, "7.5,8.0,8.6,8.9,9.0,10.0,12.0", tuple(f"sm_{arch}" for arch in (50, 52, 60, 61, 70, 75, 80, 86, 87, 89, 90, "90a", 100, 103, 120)))
        tables = """const tables = [...page.querySelectorAll(".scroll")].filter(each => each.querySelector("table.list") && !each.closest(".finding"));
          return tables.map(each => { each.scrollLeft = 9999; const first = each.querySelector("tbody th").getBoundingClientRect(), own = each.getBoundingClientRect();
            return {content: each.scrollWidth, room: each.clientWidth, left: first.left - own.left, width: first.width}; });"""
        for seen in self.measured(page, tables, 1280):
            self.assertLessEqual(seen["content"], seen["room"], "architectures are cut off")
        narrow = self.measured(page, tables, 400)
        self.assertEqual(len(narrow), 2)
        for seen in narrow:
            self.assertLess(abs(seen["left"]), 3, "the column of files scrolls away")
            self.assertLess(seen["width"], 200)

    def test_a_page_says_what_it_is_about(self):
        page = self.scan_page(1, "7.5,6.1", options=("--driver", "12.8"))
        title, about = re.search("<title>([^<]*)", page).group(1), re.search("<h1>.*?</h1>.*?<p>(.*?)</p>", page, re.DOTALL).group(1)
        self.assertRegex(title, "^kshim scan: 1 ")
        for part in ("files", "sm_61", "sm_75", "12.8", r"20\d\d-\d\d-\d\d"):
            self.assertRegex(about, part)

    def scan_page(self, files, targets, archs=("sm_80",), options=()):
        folder = self.folder / "files"
        folder.mkdir(exist_ok=True)
        for number in range(files):
            for arch in archs:
                suffix = "" if len(archs) == 1 else f"_{arch}"
                (folder / f"libwith_a_name_that_is_rather_long_{number}{suffix}.ptx").write_text(ptx([f"k{number}"], arch))
        return self.kshim("scan", "--target", targets, *options, "--format", "html", folder).stdout

    def test_ten_thousand_files_and_a_hundred_thousand_kernels(self):
        """What is shown is capped, and the page says so; the filter still sifts it."""
        for number in range(10_000):
            (self.folder / f"f{number}.ptx").write_text(ptx([f"k{number}_{kernel}" for kernel in range(10)]))
        page = self.kshim("scan", "--kernels", "--target", "7.5,8.0", "--format", "html", self.folder).stdout
        self.assertLess(len(page), 12_000_000)
        self.assertTrue("and 8000 more" in page and "--format json" in page)
        seen = self.measured(page, FILTER % json.dumps(["f1077.ptx"]))["f1077.ptx"]
        self.assertRegex(seen["said"], r"of [\d,]+ table rows")
        self.assertGreater(seen["rows"], 0)


def ptx(kernels, arch="sm_80"):
    return f".version 8.7\n.target {arch}\n.address_size 64\n" + "".join(f".visible .entry {name}()\n{{\n  ret;\n}}\n" for name in kernels)


if __name__ == "__main__":
    if browser.PROGRAM is None:
        print("skipped: no Chromium: Debian's package is `chromium`")
        sys.exit(e2e.SKIPPED)
    with browser.Browser() as chromium:
        try:
            chromium.value("about:blank", "1")
        except browser.Ended as ended:
            print(f"skipped: no Chromium that runs here: {ended}")
            sys.exit(e2e.SKIPPED)
        e2e.main()
