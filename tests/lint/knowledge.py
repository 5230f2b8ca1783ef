#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""knowledge/*.json and tests/knowledge/*.json are as docs/schema/knowledge.json says, as tools/renew_knowledge writes them, and
every id in `sources` is a row of sources.json. What the command asks for by name is there: fixes, recipes and machine checks."""
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
import schemas  # noqa: E402


def tool():
    loader = importlib.machinery.SourceFileLoader("renew_knowledge", str(ROOT / "tools" / "renew_knowledge"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("renew_knowledge", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def main():
    validator = schemas.jsonschema_or_skip().Draft202012Validator(schemas.ours()["knowledge"])
    text_of = tool().text_of
    wrong = []
    known = {row["id"]: row["date"] for row in json.loads((ROOT / "knowledge/sources.json").read_text(encoding="utf-8"))["sources"]}
    for folder in (ROOT / "knowledge", ROOT / "tests" / "knowledge"):
        tables = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.json"))}
        for name, text in tables.items():
            where = (folder / name).relative_to(ROOT)
            table = json.loads(text)
            wrong += [f"{where}: {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in validator.iter_errors(table)]
            if not list(validator.iter_errors(table)) and text_of(table) != text:
                wrong.append(f"{where}: not in its form; tools/renew_knowledge --format")
            for section, rows in table.items():
                ids = [row["id"] for row in rows if "id" in row] if isinstance(rows, list) else []
                wrong += [f"{where}: {section}: two rows have the id {name}" for name in sorted(set(ids)) if ids.count(name) > 1]
                for row in rows if isinstance(rows, list) else []:
                    cited = row.get("sources", "").split()
                    wrong += [f"{where}: {section}: source {word} is not known" for word in cited if word not in known]
                    later = max([known.get(word, "") for word in cited] + [row.get("date") or ""])
                    if folder.parent == ROOT and later > table["date"]:  # the command takes the newer one of two tables
                        wrong.append(f"{where}: {section}: a row is of {later}, `date` of {table['date']}")
    gpus = json.loads((ROOT / "knowledge/gpus.json").read_text(encoding="utf-8"))["gpus"]
    toolkits = json.loads((ROOT / "knowledge/toolkits.json").read_text(encoding="utf-8"))["toolkits"]
    targets = {row["cuda"]: set(row["targets"].split()) for row in toolkits}
    numbers = {gpu["cc"].replace(".", "") for gpu in gpus}
    wrong += [f"knowledge/toolkits.json: CUDA {gpu['first_toolkit']} does not have {gpu['cc']}, and gpus.json says that it is the first"
              for gpu in gpus if gpu["cc"].replace(".", "") not in targets.get(gpu["first_toolkit"], numbers)]
    wrong += [f"knowledge/gpus.json: no GPU {number}, which CUDA {cuda} has as a target"
              for cuda, known in targets.items() for number in sorted({target.rstrip("af") for target in known} - numbers) if int(number) >= min(map(int, numbers))]
    for gpu in gpus:
        number = gpu["cc"].replace(".", "")
        forms = {suffix for each in targets.values() for suffix in "af" if number + suffix in each}
        if forms != set(gpu["first_isa"]) - {"base"}:
            wrong.append(f"knowledge/gpus.json: {gpu['cc']}: the forms of `first_isa` are not those that toolkits.json has as targets: {sorted(forms)}")
        if ("f" in forms) != (gpu["cc"] in gpu["family"]):
            wrong.append(f"knowledge/gpus.json: {gpu['cc']}: `family` holds it where there is a target {number}f, and only there")
        # A later GPU of the same generation of the instruction set runs its f images. 10.1 (Thor, now 11.0) stands alone.
        major, minor = (int(part) for part in gpu["cc"].split("."))
        later = [each["cc"] for each in gpus if each["cc"].startswith(f"{major}.") and int(each["cc"].split(".")[1]) > minor and each["cc"] != "10.1"]
        if gpu["family"] and gpu["cc"] != "10.1" and set(later) - set(gpu["family"]):
            wrong.append(f"knowledge/gpus.json: {gpu['cc']}: `family` lacks {' '.join(sorted(set(later) - set(gpu['family'])))}, which runs its f images")
        # Where a release is not published (12.7), its ISA may be the first one.
        for form, isa in gpu["first_isa"].items():
            first = next((at for at, row in enumerate(toolkits) if number + form.replace("base", "") in row["targets"].split()), 0)
            begin = first
            while begin > 0 and not toolkits[begin - 1]["targets"]:
                begin -= 1
            if first > 0 and isa not in {row["isa"] for row in toolkits[begin:first + 1]}:
                wrong.append(f"knowledge/gpus.json: {gpu['cc']}: `first_isa` of {form} is {isa}, and CUDA {toolkits[first]['cuda']}, which has it first, "
                             f"is {toolkits[first]['isa']} in toolkits.json")
    # tileiras has had every GPU since 10.0 from the day nvcc had it; of the older ones it learned some at a time.
    wrong += [f"knowledge/toolkits.json: CUDA {row['cuda']}: `targets` has {number}, `tile_targets` does not" for row in toolkits if row["tile_targets"]
              for number in sorted(targets[row["cuda"]] - set(row["tile_targets"].split())) if number.isdigit() and int(number) >= 100]
    fixes = json.loads((ROOT / "knowledge/fixes.json").read_text(encoding="utf-8"))
    for call, table in (("fix_of", "fixes"), ("find_recipe", "recipes"), ("add_check", "machine_checks")):
        rows = {row["id"] for row in fixes[table]}
        asked = set()
        for path in sorted((ROOT / "analyzer").rglob("*.cpp")):
            for argument in re.findall(call + r'\(([^,{;]*?"[^,{;]*?)[,)]', path.read_text(encoding="utf-8")):
                asked.update(re.findall(r'"([^"]+)"', argument))
        wrong += [f"analyzer: {call}(\"{name}\"): knowledge/fixes.json has no such row of `{table}`" for name in sorted(asked - rows)]
        if call != "find_recipe":
            wrong += [f"knowledge/fixes.json: nothing asks for {name} of `{table}`" for name in sorted(rows - asked)]
    print("\n".join(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
