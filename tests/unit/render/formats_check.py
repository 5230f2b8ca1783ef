# SPDX-License-Identifier: Apache-2.0
"""Every format of hostile analyses and scans (formats_probe), read by parsers that are not ours.

formats_check.py PROBE
"""
import base64
import glob
import hashlib
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import xml.etree.ElementTree

import schemas

FOLDER = None
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
with open(os.path.join(SOURCE, "analyzer", "core", "causes.def"), encoding="utf-8") as causes:
    CAUSES = re.findall(r'^KSHIM_CAUSE\(\w+, "([^"]+)"', causes.read(), re.MULTILINE)
READ = set()
BAD_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


def outputs(extension):
    READ.add("." + extension)
    paths = sorted(glob.glob(os.path.join(FOLDER, "*." + extension)))
    for path in paths:
        with open(path, "rb") as file:
            yield os.path.basename(path), file.read().decode("utf-8")
    if not paths:
        raise AssertionError(f"no *.{extension} was written")


def tearDownModule():
    written = {os.path.splitext(name)[1] for name in os.listdir(FOLDER)}
    if written - READ:
        raise AssertionError(f"no test here reads {sorted(written - READ)}")


class Page(html.parser.HTMLParser):
    """Balanced tags of the allowed kinds, no attribute that runs or loads anything, links to this page alone. The script is ours."""

    TAGS = {"html", "head", "body", "title", "style", "script", "main", "nav", "section", "h1", "h2", "h3", "p", "ul", "ol", "li", "div",
            "table", "thead", "tbody", "tr", "th", "td", "code", "pre", "strong", "span", "details", "summary", "a", "label", "output", "button"}
    ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "scope", "id", "href", "title", "open", "hidden", "role",
                  "tabindex", "for", "type", "placeholder", "autocomplete", "spellcheck", "aria-label", "aria-labelledby"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.text = []
        self.assets = {"style": [], "script": []}
        self.policy = None

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name not in self.ATTRIBUTES or (name == "href" and not re.fullmatch(r"#[a-z0-9-]+", value)):
                raise AssertionError(f"<{tag} {name}={value!r}>")
        if tag in ("meta", "input"):
            if ("http-equiv", "Content-Security-Policy") in attrs:
                self.policy = dict(attrs)["content"]
            return
        if tag not in self.TAGS:
            raise AssertionError(f"<{tag}>")
        if tag in self.assets:
            self.assets[tag].append("")
        self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}>")

    def handle_comment(self, data):
        raise AssertionError(f"<!--{data}")

    def unknown_decl(self, data):
        raise AssertionError(f"<![{data}")

    def handle_data(self, data):
        if self.open and self.open[-1] in self.assets:
            self.assets[self.open[-1]][-1] += data
        else:
            self.text.append(data)


def runner_commands(text):
    """The lines that GitHub's runner takes for commands: `::name` at the begin, blanks of Unicode aside, and `##[name` anywhere."""
    return [line for line in text.split("\n") if line.strip().startswith("::") or "##[" in line]


class Formats(unittest.TestCase):
    def test_json_is_what_the_schemas_say(self):
        checkers = {kind: schemas.validator(kind) for kind in ("analysis", "scan")}
        for name, text in outputs("json"):
            checker = checkers["scan" if name.startswith("scan") else "analysis"]
            self.assertTrue(text.isascii(), name)
            self.assertTrue(text.endswith("}\n"), name)
            data = json.loads(text)
            # The probe's architectures are hostile texts too; their form is not what is tested here.
            errors = [error for error in checker.iter_errors(data)
                      if error.validator not in ("pattern", "anyOf", "enum")]
            self.assertEqual([f"{error.json_path}: {error.message}" for error in errors], [], name)

    def test_jsonl_is_the_json_in_one_line(self):
        for name, text in outputs("jsonl"):
            self.assertEqual(text.count("\n"), 1, name)
            with open(os.path.join(FOLDER, name.removesuffix("l")), encoding="utf-8") as file:
                self.assertEqual(json.loads(text), json.load(file), name)

    def test_html_is_balanced_and_inert(self):
        for name, text in outputs("html"):
            page = Page()
            page.feed(text)
            page.close()
            self.assertEqual(page.open, [], name)
            # One sheet and one script, and the policy names no others.
            hashes = {kind: base64.b64encode(hashlib.sha256("".join(texts).encode()).digest()).decode() for kind, texts in page.assets.items()}
            self.assertEqual([len(texts) for texts in page.assets.values()], [1, 1], name)
            self.assertEqual(page.policy, f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; "
                                          "require-trusted-types-for 'script'; base-uri 'none'; form-action 'none'", name)
            self.assertIsNone(BAD_CONTROLS.search(text), name)
            if name.startswith("empty"):
                continue
            said = "".join(page.text)
            for kept in ("</script><script>alert(1)</script>", "]]><![CDATA[ <evil/> &amp; &#0;", "\"><svg onload=alert(1)>'"):
                self.assertIn(kept, said, name)

    def test_html_can_be_read_in_light_and_in_the_dark(self):
        """WCAG's 4.5 to 1 for every color of text on every ground; and a sheet that loads nothing."""
        (_, text), *_ = outputs("html")
        sheet = re.search(r"<style>(.*?)</style>", text, re.DOTALL).group(1)
        self.assertNotRegex(sheet, r"url\(|@import|@font-face|https?:")
        pairs = re.findall(r"--(\w+):light-dark\((#\w+),(#\w+)\)", sheet)
        for theme in (0, 1):
            colors = {name: both[theme] for name, *both in pairs}
            for ink in ("ink", "dim", "good", "bad", "warn", "link"):
                for ground in ("paper", "soft"):
                    self.assertGreater(contrast(colors[ink], colors[ground]), 4.5, f"{ink} on {ground}: {theme}")

    def test_no_line_is_a_command_of_the_runner(self):
        """A page may be printed in a job's log: no text of a report becomes a command there. (In text: tests/unit/render/text_test.cpp.)"""
        for extension in ("html", "md", "xml", "json", "sarif", "txt"):
            for name, text in outputs(extension):
                self.assertEqual([line[:200] for line in runner_commands(text)], [], name)

    def test_junit_is_xml_and_counts(self):
        for name, text in outputs("xml"):
            self.assertIsNone(re.search("[\ufffe\uffff]", text), name)
            self.assertIsNone(BAD_CONTROLS.search(text), name)
            root = xml.etree.ElementTree.fromstring(text.encode("utf-8"))
            self.assertEqual(root.tag, "testsuites")
            self.assert_counts(root, name)
            for suite in root:
                self.assertEqual(suite.tag, "testsuite")
                self.assert_counts(suite, name)
                for case in suite:
                    self.assertEqual(case.tag, "testcase")
                    self.assertTrue(case.get("name") and case.get("classname"), name)
                    self.assertLessEqual({child.tag for child in case}, {"failure", "error", "skipped", "system-out"})
            if not name.startswith("empty"):
                self.assertGreater(len(root.findall(".//failure")), 0, name)
                # What a line of the text holds comes back as it went in, as long as it is no control.
                self.assertIn("</script><script>alert(1)</script>", "".join(root.itertext()) + text_of_attributes(root), name)

    def assert_counts(self, element, name):
        for attribute, path in (("tests", ".//testcase"), ("failures", ".//failure"), ("errors", ".//error"),
                                ("skipped", ".//skipped")):
            self.assertEqual(int(element.get(attribute)), len(element.findall(path)), f"{name}: {attribute}")

    def test_sarif_has_what_the_standard_requires(self):
        for name, text in outputs("sarif"):
            log = json.loads(text)
            self.assertEqual(log["version"], "2.1.0")
            (run,) = log["runs"]
            driver = run["tool"]["driver"]
            self.assertEqual(driver["name"], "kshim")
            self.assertRegex(driver["semanticVersion"], r"^\d+\.\d+\.\d+")
            rules = driver["rules"]
            self.assertEqual({rule["id"] for rule in rules}, set(CAUSES))
            for rule in rules:  # https://docs.github.com/en/code-security/reference/code-scanning/sarif-files
                self.assertLessEqual(len(rule["shortDescription"]["text"]), 1024)
                self.assertLessEqual(len(rule["fullDescription"]["text"]), 1024)
                self.assertTrue(rule["help"]["text"] and rule["help"]["markdown"])
                self.assertIn(rule["properties"]["precision"], ("very-high", "high", "medium", "low"))
                self.assertIn(rule["properties"]["problem.severity"], ("error", "warning", "recommendation"))
                self.assertLessEqual(len(rule["properties"]["tags"]), 20)
            prints = [result["partialFingerprints"]["kshim/v1"] for result in run["results"]]
            self.assertEqual(len(prints), len(set(prints)), name)
            self.assertEqual(prints, [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]])
            self.assertRegex(run["automationDetails"]["id"], "^kshim-(analyze|scan)/$")
            for result in run["results"]:
                self.assertEqual(rules[result["ruleIndex"]]["id"], result["ruleId"])
                self.assertIn(result["level"], ("error", "warning", "note"))
                self.assertTrue(result["message"]["text"])
                for part in result["message"].values():
                    self.assertIsNone(BAD_CONTROLS.search(part), name)
                self.assertGreaterEqual(len(result["locations"]), 1)
                for location in result["locations"] + result.get("relatedLocations", []):
                    physical = location["physicalLocation"]
                    uri = physical["artifactLocation"]["uri"]
                    self.assertRegex(uri, r"^([A-Za-z0-9\-._~]|%[0-9A-F]{2})([A-Za-z0-9\-._~/]|%[0-9A-F]{2})*$")
                    self.assertGreaterEqual(physical["region"]["startLine"], 1)
            if not name.startswith("empty"):
                self.assertEqual(len(run["results"]), 4)

    def test_sarif_is_what_its_schema_says(self):
        checker = schemas.sarif_validator()
        if checker is None:
            self.skipTest("no Python package schemastore; tools/setup installs it")
        for name, text in outputs("sarif"):
            self.assertEqual(schemas.errors(checker, json.loads(text)), [], name)

    def test_sarif_names_files_as_they_are(self):
        # The path of the first finding in the JSON, decoded from the URI of its SARIF. Relative paths start in the working folder.
        for shift in range(17):
            with open(os.path.join(FOLDER, f"analysis{shift}.json"), encoding="utf-8") as file:
                finding = json.load(file)["findings"][0]
            with open(os.path.join(FOLDER, f"analysis{shift}.sarif"), encoding="utf-8") as file:
                result = json.load(file)["runs"][0]["results"][0]
            place = result["locations"][0]["physicalLocation"]
            self.assertEqual(place["region"]["startLine"], 7)
            self.assertEqual(place["artifactLocation"].get("uriBaseId"), "%SRCROOT%")
            uri = urllib.parse.unquote(place["artifactLocation"]["uri"].removeprefix("file://"), errors="replace")
            if "\ufffd" not in uri:  # where it is no UTF-8, two decoders differ in how many of these they write
                self.assertEqual(uri, finding["where"]["file"])

    def test_github_is_one_command_a_line(self):
        order = {"error": 0, "warning": 1, "notice": 2}
        for name, text in outputs("github"):
            kinds = []
            for line in text.split("\n")[:-1]:
                match = re.fullmatch(r"::(error|warning|notice) ((?:[a-z]+=[^:,]*)(?:,[a-z]+=[^:,]*)*)::(.*)", line)
                self.assertIsNotNone(match, f"{name}: {line[:200]!r}")
                keys = [part.split("=", 1)[0] for part in match.group(2).split(",")]
                self.assertEqual(len(keys), len(set(keys)))
                self.assertLessEqual(set(keys), {"file", "line", "title"})
                self.assertIsNone(BAD_CONTROLS.search(line), name)
                self.assertLess(len(line), 32_000)
                kinds.append(order[match.group(1)])
            self.assertEqual(kinds, sorted(kinds), name)
            self.assertLessEqual(max(kinds.count(kind) for kind in order.values()), 10, name)
            self.assertNotIn("\r", text)
            self.assertEqual(kinds.count(0), 2)

    def test_markdown_as_github_renders_it(self):
        """By cmark-gfm, GitHub's own: no link, picture, task or HTML but folding comes of what strangers wrote; tables keep their cells."""
        try:
            import cmarkgfm
        except ImportError:
            self.skipTest("no Python package cmarkgfm; tools/setup installs it")
        for name, text in outputs("md"):
            page = cmarkgfm.github_flavored_markdown_to_html(text, cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE)
            tags = re.findall(r"<(/?[a-z][a-z0-9]*)([^<>]*)>", page)
            self.assertLessEqual({tag.lstrip("/") for tag, _ in tags},
                                 {"h1", "h2", "h3", "p", "ul", "li", "code", "pre", "strong", "table", "thead", "tbody", "tr", "th", "td", "details",
                                  "summary"}, name)
            self.assertLessEqual({part.strip() for _, part in tags}, {"", 'lang="sh"', 'align="right"'}, name)
            self.assertEqual(page.count("<details>"), page.count("</details>"), name)
            # What is left outside of code is text that GitHub's own filters see: mentions, issues, formulas, emoji.
            plain = html.unescape(re.sub(r"<[^>]*>", "\n", re.sub(r"<(code|pre)[^>]*>.*?</\1>", "", page, flags=re.DOTALL)))
            self.assertIsNone(re.search(r"@\w|#\d|GH-\d|\$|:\w+:|https?:|www\.", plain), name)
            for table in re.findall(r"<table>.*?</table>", page, re.DOTALL):
                self.assertEqual(len({row.count("<t") for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)}), 1, name)
            self.assertLess(len(text), 65_536, name)

    def test_junit_as_its_readers_read_it(self):
        try:
            import junitparser
        except ImportError:
            self.skipTest("no Python package junitparser; tools/setup installs it")
        for name, text in outputs("xml"):
            suites = junitparser.JUnitXml.fromstring(text.encode("utf-8"))
            cases = [case for suite in suites for case in suite]
            self.assertEqual((suites.tests, suites.failures), (len(cases), sum(1 for case in cases if any(
                isinstance(result, junitparser.Failure) for result in case.result))), name)
            for case in cases:
                for result in case.result:
                    self.assertTrue(result.message, name)

    def test_markdown_has_no_markup_of_strangers(self):
        for name, text in outputs("md"):
            self.assertIsNone(BAD_CONTROLS.search(text), name)
            visible = without_code(text)
            for line in visible.split("\n"):
                plain = re.sub(r"\\.", "", line)
                self.assertIsNone(re.search(r"<(?!/?details>|summary>|/summary>)", plain), f"{name}: {line[:200]}")
                self.assertIsNone(re.search(r"[@$`\[\]~]|://|www\.|#\d|GH-\d|:\S+:", plain), f"{name}: {line[:200]}")
            self.assertEqual(visible.count("<details>"), visible.count("</details>"), name)
            rows = None
            for line in text.split("\n"):
                if line.startswith("|"):
                    cells = len(re.findall(r"(?<!\\)\|", line))
                    rows = rows or cells
                    self.assertEqual(cells, rows, f"{name}: {line[:300]}")
                else:
                    rows = None
            self.assertLess(len(text), 1_000_000)


def contrast(one, other):
    """https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio"""
    def luminance(color):
        digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
        parts = [int(digits[at:at + 2], 16) / 255 for at in (0, 2, 4)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def text_of_attributes(root):
    return "".join(value for element in root.iter() for value in element.attrib.values())


def without_code(text):
    """Without fenced blocks and code spans, found as CommonMark finds them: by runs of backticks of the same length."""
    out = []
    fence = None
    for line in text.split("\n"):
        run = re.match(r"`{3,}", line)
        if fence is None and run and "`" not in line[run.end():]:
            fence = run.group()
        elif fence is not None:
            if line == fence:
                fence = None
        else:
            out.append(re.sub(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", line))
    if fence is not None:
        raise AssertionError("a fence is not closed")
    return "\n".join(out)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = os.environ.get("FORMATS_KEEP") or folder
        subprocess.run([sys.argv[1], FOLDER], check=True)
        sys.argv[1:] = []
        unittest.main()
