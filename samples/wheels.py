# SPDX-License-Identifier: Apache-2.0
"""Frameworks' own wheels on the simulated GPU: fetches what requirements/ pins into build/deps/FOLDER, runs scenarios under
`kshim run`, judges what was said, and writes it to output/. samples/pytorch/run and samples/frameworks/run use it."""
import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "python"  # of the virtual environment, as the first word of a command


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    wheels: str  # "torch-2.9.1": requirements/torch-2.9.1.txt
    what: str
    simulate: tuple  # of --simulate; empty: a machine without a GPU
    command: tuple  # of the virtual environment
    status: int = 0
    says: tuple = ()  # all of it must be in the text
    silent: bool = False  # the verdict's line is all
    quiet: bool = False  # notes may follow it, findings not
    environment: tuple = ()  # names that get a folder of their own
    variables: tuple = ()  # "NAME=VALUE"; @WHEELS@ in it is the site-packages of another set
    without: tuple = ()  # folders of site-packages that are left out
    needs: str = ""  # what `prepare` makes of it is done first
    programs: tuple = ()  # what the program itself must print
    log_says: tuple = ()  # what `kshim explain --log` must say of what the program printed


class Wheels:
    """The virtual environments of one folder of samples."""

    def __init__(self, folder):
        self.folder, self.deps = folder, SOURCE / "build/deps" / folder.name

    def fetch(self, name):
        venv, wanted = self.deps / name, self.folder / f"requirements/{name}.txt"
        stamp = venv / ".requirements-of-samples"
        if stamp.exists() and stamp.read_bytes() == wanted.read_bytes():
            return venv
        print(f"{self.folder.name}: fetching {name}", file=sys.stderr, flush=True)
        python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
        subprocess.run([python, "-m", "venv", venv], check=True)
        alone = ["--no-deps"] if "# alone" in wanted.read_text() else []
        subprocess.run([venv / "bin/pip", "install", "--disable-pip-version-check", "-q", *alone, "-r", wanted], check=True)
        stamp.write_bytes(wanted.read_bytes())
        return venv

    @staticmethod
    def packages(venv):
        return next(venv.glob("lib/python3.*/site-packages"))

    def copy_without(self, venv, left_out):
        """A second environment of the same files, by hard links: what is left out of it stays in the first."""
        copy = self.deps / f".{venv.name}.{os.getpid()}"
        packages = self.packages(venv.resolve())
        away = [str(packages / name) for name in left_out]

        def ignore(folder, names):
            return [name for name in names if f"{folder}/{name}" in away or name == "__pycache__"]
        shutil.copytree(venv.resolve(), copy, symlinks=True, ignore=ignore, copy_function=os.link)
        return copy


class Runs:
    def __init__(self, folder, build, write, prepare):
        self.folder, self.build, self.write, self.prepare = folder, build, write, prepare
        self.wheels, self.failed = Wheels(folder), 0

    def command(self, scenario, venv):
        """Its first word is of the environment, where that has it."""
        out = []
        for word in scenario.command:
            script = venv / "bin" / ("python3" if word == PYTHON else word)
            out.append(str(script) if "/" not in word and script.exists() else word.replace("@SIMULATOR@", str(self.build / "sim")))
        return out

    def variables(self, scenario, cache):
        out = {name: str(cache / name) for name in scenario.environment}
        for row in scenario.variables:
            name, _, value = row.partition("=")
            out[name] = re.sub(r"@([\w.-]+)@", lambda found: str(self.wheels.packages(self.wheels.fetch(found.group(1)))), value)
        return out

    def run(self, scenario):
        venv = self.wheels.fetch(scenario.wheels)
        if scenario.needs:
            self.prepare(venv, scenario.needs)
        copy = self.wheels.copy_without(venv, scenario.without) if scenario.without else None
        try:
            self.run_in(scenario, copy or venv)
        finally:
            if copy:
                shutil.rmtree(copy)

    def run_in(self, scenario, venv):
        with tempfile.TemporaryDirectory() as folder:
            reports, cache = pathlib.Path(folder) / "r", pathlib.Path(folder) / "cache"
            kshim = [str(self.build / "analyzer/kshim"), "run", "--timeout", "240", "--report", str(reports), "-o", f"{folder}/said"]
            for device in scenario.simulate:
                kshim += ["--simulate", device]
            env = {**os.environ, **self.variables(scenario, cache), "COLUMNS": "100"}
            begin = time.monotonic()
            done = subprocess.run([*kshim, "--", *self.command(scenario, venv)], cwd=self.folder, env=env, capture_output=True,
                                  text=True, errors="replace")
            seconds = time.monotonic() - begin
            said = pathlib.Path(f"{folder}/said").read_text() if os.path.exists(f"{folder}/said") else ""
            size = sum(file.stat().st_size for file in reports.glob("*.jsonl")) if reports.exists() else 0
            log = self.explained(done, pathlib.Path(folder)) if scenario.log_says else ""
            self.judge(scenario, done, said, log, size, seconds)
            if self.write:
                self.keep(scenario, done, said + log, venv, reports, cache)

    def explained(self, done, folder):
        (folder / "train.log").write_text(done.stdout + done.stderr)
        asked = subprocess.run([str(self.build / "analyzer/kshim"), "explain", "--log", "train.log"], cwd=folder, capture_output=True,
                               text=True, env={**os.environ, "COLUMNS": "100"})
        return "\n$ kshim explain --log train.log\n" + asked.stdout

    def judge(self, scenario, done, said, log, size, seconds):
        program = done.stdout + done.stderr
        wrong = [f"exit status {done.returncode}, not {scenario.status}"] if done.returncode != scenario.status else []
        # Lines are wrapped wherever they happen to end.
        for texts, words, where in ((scenario.says, said, "does not say"), (scenario.log_says, log, "explain does not say")):
            wrong += [f"{where} {text!r}" for text in texts if " ".join(text.split()) not in " ".join(words.split())]
        wrong += [f"the program does not print {text!r}" for text in scenario.programs if text not in program]
        blocks = [block for block in said.split("\n\n") if block.strip()]
        if scenario.silent and len(blocks) > 2:
            wrong.append("is not silent")
        if scenario.quiet and any(block.lstrip().startswith(("error", "warning")) for block in blocks):
            wrong.append("is not quiet")
        print(f"{'FAILED' if wrong else 'ok':7} {scenario.name:20} {scenario.wheels:13} {seconds:5.1f} s  reports {size / 1000:6.1f} kB  "
              f"{'; '.join(wrong)}", flush=True)
        if wrong:
            self.failed += 1
            print(program[-3000:] + said + log)

    def shown(self, text, venv, reports, cache):
        """What is of this machine and this minute, made anybody's."""
        venvs = {str(path): "/home/ada/" + ("venv" if path == venv else path.name)
                 for path in [venv, *self.wheels.deps.iterdir()] if path.is_dir()}
        venvs.update({str(pathlib.Path(path).resolve()): name for path, name in list(venvs.items())})
        venvs[str(venv.resolve())] = "/home/ada/venv"
        for path, name in ((str(reports), "kshim-report"), (str(cache), "/tmp/cache"),
                           *sorted(venvs.items(), key=lambda row: -len(row[0])),
                           (str(self.folder), f"/home/ada/{self.folder.name}"), (str(SOURCE), "/home/ada/kshim")):
            text = text.replace(path, name)
        text = re.sub(r"\b" + re.escape(os.uname().nodename) + r"\.(\d+)", "box.4711", text)
        text = re.sub(rf"\b(on|box) {re.escape(os.uname().nodename)}\b", r"\1 box", text)
        text = re.sub(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+:? ", "", text)
        text = re.sub(r"\b([EWI])\d{4} [\d:.]+ +\d+ ", r"\1 ", text)
        text = re.sub(r"\x1b\[[\d;]*m", "", text)
        return re.sub(r"\(pid \d+\)", "(pid 4711)", text)

    def keep(self, scenario, done, said, venv, reports, cache):
        options = "".join(f" --simulate '{device}'" if "," in device or " " in device else f" --simulate {device}" for device in scenario.simulate)
        before = "".join(row.replace("@", "") + " " for row in scenario.variables)
        line = f"$ {before}kshim run{options} -- {' '.join(scenario.command).replace('@SIMULATOR@', 'SIMULATOR')}\n"
        program = [row for row in (done.stdout + done.stderr).splitlines() if row.strip()]
        own = self.shown("\n".join(program[-12:]), venv, reports, cache)
        folder = self.folder / "output"
        folder.mkdir(exist_ok=True)
        wheels = scenario.wheels.replace("-", " ", 1)
        (folder / f"{scenario.name}.txt").write_text(f"# {scenario.what}; {wheels}\n{line}{own}\n\n{self.shown(said, venv, reports, cache)}")


def main(folder, scenarios, text, prepare=None):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/dev")
    parser.add_argument("--only", default="")
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    chosen = [scenario for scenario in scenarios if options.only in scenario.name]
    if options.fetch:
        wheels = Wheels(folder)
        for name in sorted({scenario.wheels for scenario in chosen}):
            wheels.fetch(name)
        return 0
    if not (options.build / "analyzer/kshim").exists():
        sys.exit(f"{folder.name}: {options.build}/analyzer/kshim is not there: cmake --preset dev && cmake --build --preset dev")
    runs = Runs(folder, options.build.resolve(), not options.check, prepare)
    for scenario in chosen:
        runs.run(scenario)
    print(f"{len(chosen) - runs.failed} of {len(chosen)} scenarios are as they should be")
    return 1 if runs.failed else 0
