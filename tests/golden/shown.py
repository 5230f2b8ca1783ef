# SPDX-License-Identifier: Apache-2.0
"""What of an output is kept as a golden one: what tells nothing is left out, the style sheet and the script, SARIF's rules that no
result names, versions, the folder."""
import json
import re

FILES = {"markdown": "markdown.txt", "html": "html.txt", "sarif": "sarif.json", "junit": "junit.txt", "github": "github.txt"}


def html(text):
    """A tag a line, so that a diff can be read."""
    text = re.sub(r"<(style|script)>.*?</\1>", r"<\1/>", text, flags=re.DOTALL)
    text = re.sub(r"'sha256-[^']*'", "'sha256-HASH'", text.replace("&#39;", "'"))
    return re.sub(r"(</?(?:head|body|main|nav|section|meta|h[1-4]|p|ul|ol|li|div|table|thead|tbody|tr|pre|details|style|script)\b[^>]*>)", r"\n\1", text)


def sarif(text, folder):
    log = json.loads(text)
    run = log["runs"][0]
    driver = run["tool"]["driver"]
    driver["version"] = driver["semanticVersion"] = "VERSION"
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"], "ruleIndex"
    named = {result["ruleId"] for result in run["results"]}
    driver["rules"] = [rule for rule in driver["rules"] if rule["id"] in named]
    root = run["originalUriBaseIds"]["%SRCROOT%"]
    assert root["uri"] == f"file://{folder}/", root
    root["uri"] = "file:///FOLDER/"
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def shown(output_format, text, folder):
    text = re.sub(r"\bkshim \d+\.\d+\.\d+[^\s,]*( \([0-9a-f]+[^\s,]*\))?(, \d{4}-\d\d-\d\d)?", "kshim VERSION", text)
    if output_format == "html":
        return html(text)
    return sarif(text, folder) if output_format == "sarif" else text
