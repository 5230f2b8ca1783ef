#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/ci: the examples fit the published schemas, their scripts are read by bash, and what they ask of kshim and of pytest's
plugin is there."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, __file__.rpartition("/")[0] + "/support")
import e2e  # noqa: E402
import staged  # noqa: E402

staged.require_modules("check_jsonschema", "ruamel.yaml", "pytest")
e2e.require(e2e.KSHIM, e2e.SHIM)
from ruamel.yaml import YAML  # noqa: E402

EXAMPLES = e2e.SOURCE / "docs" / "ci"
OWN = e2e.SOURCE / ".github" / "workflows"
SCHEMAS = {"github-actions.yml": ["--builtin-schema", "vendor.github-workflows"],
           "gitlab-ci.yml": ["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"]}


def scripts(document):
    """Every string of a `run`, `script` or `after_script`."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        if key in ("run", "script", "after_script"):
            yield value if isinstance(value, str) else "\n".join(value)
        elif isinstance(value, (dict, list)):
            yield from scripts(value)


class Workflows(staged.Staged):
    simulator = False

    def check(self, path, schema):
        return self.run_program(sys.executable, "-m", "check_jsonschema", *schema, path)

    def test_schemas(self):
        self.assertEqual({path.name for path in EXAMPLES.glob("*.yml")}, set(SCHEMAS))
        for name, schema in SCHEMAS.items():
            with self.subTest(name):
                done = self.check(EXAMPLES / name, schema)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.check(e2e.SOURCE / "action.yml", ["--builtin-schema", "vendor.github-actions"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_our_own(self):
        paths = sorted(OWN.glob("*.yml"))
        self.assertTrue(paths)
        for path in paths:
            with self.subTest(path.name):
                done = self.check(path, SCHEMAS["github-actions.yml"])
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                for script in scripts(YAML(typ="safe").load(path.read_text())):
                    for word in re.findall(r"(?:^|\s)((?:tools|\.ci)/\S+)", script):
                        self.assertTrue(os.access(e2e.SOURCE / word, os.X_OK), word)

    def test_the_schemas_refuse_what_is_wrong(self):
        for name, (good, bad) in {"github-actions.yml": ("runs-on:", "run-on:"), "gitlab-ci.yml": ("junit: [", "junut: [")}.items():
            with self.subTest(name):
                text = (EXAMPLES / name).read_text()
                self.assertIn(good, text)
                wrong = self.folder / name
                wrong.write_text(text.replace(good, bad))
                self.assertEqual(self.check(wrong, SCHEMAS[name]).returncode, 1)

    def test_scripts(self):
        shown = self.pytest("--help").stdout
        commands = 0
        for name in SCHEMAS:
            for script in scripts(YAML(typ="safe").load((EXAMPLES / name).read_text())):
                script = re.sub(r"\$\{\{.*?\}\}", "sm_86", script)
                with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
                    file.write(script), file.flush()
                    done = subprocess.run(["bash", "-n", file.name], stderr=subprocess.PIPE, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), script)
                for command, rest in re.findall(r"^\s*kshim (\w+) (.*)$", script, re.M):
                    commands += 1
                    help_text = self.kshim(command, "--help").stdout
                    for option in re.findall(r" (--?[a-z][a-z-]*)", " " + rest.partition("#")[0].partition("||")[0]):
                        self.assertIn(option, help_text, f"kshim {command} {rest}")
                for option in re.findall(r"--kshim[a-z-]*", script):
                    commands += 1
                    self.assertRegex(shown, rf"(?m)^  {option}\b", option)
        self.assertGreater(commands, 12)


if __name__ == "__main__":
    e2e.main()
