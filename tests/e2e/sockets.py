#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where maintainers plug `kshim scan` in, run as far as this machine can: the GitHub Action's step, GitLab's jobs, cibuildwheel's command, the
test of a conda recipe, RAPIDS' validate_wheel.sh (a container: containers.py); and the scripts that complete its commands, in the shells themselves."""
import io
import json
import os
import pathlib
import re
import shutil
import sys
import tarfile
import xml.etree.ElementTree
import zipfile

import e2e

SAXPY = e2e.SAMPLES / "01_missing_architecture" / "saxpy"  # sm_80 and sm_90
SCALE = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"  # sm_80 and sm_89
HISTOGRAM = e2e.SAMPLES / "02_ptx_newer_than_gpu" / "histogram"  # PTX alone
ATTENTION = e2e.SAMPLES / "03_arch_specific_sm_90a" / "attention"  # sm_90a alone
e2e.require(e2e.KSHIM, SAXPY, SCALE, ATTENTION, HISTOGRAM)
CI = e2e.SOURCE / "docs" / "ci"
BIN = f"{e2e.KSHIM.parent}:{os.environ['PATH']}"


def load_yaml(path):
    try:
        from ruamel.yaml import YAML
    except ImportError:
        print("skipped: no ruamel.yaml")
        sys.exit(e2e.SKIPPED)
    return YAML(typ="safe").load(path.read_text())


class Plugged(e2e.Case):
    def wheel(self, folder="dist", **members):
        path = self.folder / folder / "things-1.2-cp311-cp311-linux_x86_64.whl"
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            for member, file in members.items():
                out.write(file, f"things/{member}.so")
            info = "things-1.2.dist-info"
            out.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: things\nVersion: 1.2\n")
            out.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n")
            out.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*out.namelist(), f"{info}/RECORD"]))
        return path

    def bash(self, script, **env):
        return self.run_program("bash", "-ec", script, env=e2e.clean_environment(PATH=BIN, **env))


class Sockets(Plugged):
    def test_github_action(self):
        action = load_yaml(e2e.SOURCE / "action.yml")
        self.assertEqual(action["runs"]["using"], "composite")
        [step] = action["runs"]["steps"]
        self.assertEqual(step["shell"], "bash")

        def run(**inputs):
            values = {name: inputs.get(name, row["default"]) for name, row in action["inputs"].items()}
            env = {name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: values[found[1]], text) for name, text in step["env"].items()}
            self.assertNotIn("${{", "".join(env.values()) + step["run"])
            return self.bash(step["run"], GITHUB_STEP_SUMMARY=self.folder / "summary.md", **env)

        self.wheel(_C=SAXPY)
        done = run(kshim="kshim", expect="8.0 9.0", arguments="--exactly")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = run(kshim="kshim", expect="8.0 12.0")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("::error", done.stdout)
        self.assertIn("sm_120", (self.folder / "summary.md").read_text())
        self.assertEqual(run(kshim="kshim", expect="8.0", paths="missing/*.whl").returncode, 1)
        (self.folder / "pyproject.toml").write_text('[tool.kshim]\nexpect = "8.0 9.0 12.0"\n')
        self.assertEqual(run(kshim="kshim").returncode, 1)

    def test_cibuildwheel(self):
        text = (CI / "cibuildwheel.toml").read_text()
        command = re.search(r'repair-wheel-command = "(.*)"', text)[1]
        (self.folder / "pyproject.toml").write_text(text)
        tools = pathlib.Path(sys.executable).parent
        if not (tools / "auditwheel").exists():
            self.skipTest("no auditwheel; tools/requirements-recipes.txt has it")

        def repair(**members):
            wheel = self.wheel("built", **members)
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            (self.folder / "out").mkdir()
            script = command.format(dest_dir="out", wheel=wheel, project=self.folder)
            done = self.bash(f"PATH={tools}:$PATH; {script}", TORCH_CUDA_ARCH_LIST="8.0 9.0")
            self.assertEqual([("manylinux" in path.name) for path in (self.folder / "out").iterdir()], [True], done.stderr)
            return done.returncode

        self.assertEqual(repair(_C=SAXPY, _fa3_C=ATTENTION), 0)
        self.assertEqual(repair(_C=SCALE, _fa3_C=ATTENTION), 1)
        self.assertEqual(repair(_C=SAXPY), 1)  # the rule for _fa3_C has no file

    def test_conda_recipe(self):
        [test] = load_yaml(CI / "conda-recipe.yaml")["tests"]
        (self.folder / "lib").mkdir()
        shutil.copy(SAXPY, self.folder / "lib" / "libfoo.so")
        [line] = test["script"]
        for archs, status in (("80-real;90-real", 0), ("80-real;121-virtual", 1), ("", 2)):
            self.assertEqual(self.bash(line, PREFIX=self.folder, CUDAARCHS=archs).returncode, status, archs)

    def test_gitlab(self):
        """The jobs that read a wheel, but for what pip does in them; each leaves the file that GitLab reads."""
        jobs = load_yaml(CI / "gitlab-ci.yml")
        self.wheel(_C=SAXPY)
        (self.folder / "pyproject.toml").write_text('[tool.kshim]\nexpect = "8.0 9.0"\nexactly = true\n')
        for name, status in (("gpu-code-wheel", 1), ("gpu-code-expected", 0)):
            lines = [line for line in jobs[name]["script"] if not line.startswith("pip ")]
            self.assertEqual(len(lines), 1)
            done = self.bash(lines[0])
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            cases = xml.etree.ElementTree.parse(self.folder / jobs[name]["artifacts"]["reports"]["junit"]).findall(".//testcase")
            self.assertEqual(any(case.find("failure") is not None for case in cases), status == 1)
            self.assertTrue(cases)

    def test_validate_wheel(self):
        (self.folder / "python").mkdir()
        (self.folder / "python" / "pyproject.toml").write_text('[tool.kshim]\nexpect = "8.0 9.0"\nexactly = true\n')
        for built, status in ((SAXPY, 0), (SCALE, 1)):
            self.wheel(_C=built)
            self.assertEqual(self.bash(f"{CI}/validate_wheel.sh python ../dist").returncode, status)


class Completion(Plugged):
    """Each script in its own shell: the commands, options and values that it offers."""

    def script(self, shell):
        done = self.kshim("completion", shell)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        path = self.folder / f"kshim.{shell}"
        path.write_text(done.stdout)
        return path

    def needs(self, shell):
        if not shutil.which(shell):
            self.skipTest(f"no {shell}")

    def offers(self, line):
        """What bash offers behind `line`."""
        words = line.split(" ")
        quoted = " ".join(f"'{word}'" for word in words)
        done = self.bash(f"source kshim.bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _kshim; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        self.assertEqual(done.returncode, 0, done.stderr)
        return set(done.stdout.split())

    def test_bash(self):
        self.script("bash")
        (self.folder / "thing.so").write_text("")
        self.assertEqual(self.offers("kshim sc"), {"scan"})
        self.assertLessEqual({"run", "analyze", "scan", "diff", "explain", "doctor", "path"}, self.offers("kshim "))
        self.assertLessEqual({"--expect", "--exactly"}, self.offers("kshim scan --ex"))
        self.assertEqual(self.offers("kshim scan --format j"), {"json", "jsonl", "junit"})
        self.assertEqual(self.offers("kshim run --status "), {"child", "findings"})
        self.assertEqual(self.offers("kshim scan th"), {"thing.so"})

    def test_zsh(self):
        self.needs("zsh")
        path = self.script("zsh")
        self.assertEqual(self.run_program("zsh", "-n", path).returncode, 0)
        # A terminal of its own, in which Tab is pressed.
        done = self.run_program("zsh", "-fc", f"""
            zmodload zsh/zpty
            zpty -b shell zsh -f -i
            zpty -w shell 'PS1=; setopt noalwayslastprompt; autoload -Uz compinit; compinit -u -d {self.folder}/dump; source {path}; echo rea''dy'
            zpty -r shell all '*ready*'
            zpty -n -w shell 'kshim scan --format j'
            for i in {{1..100}}; do
              zpty -n -w shell $'\\t'
              sleep 0.1
              while zpty -r -t shell part; do shown+=$part; done
              if [[ $shown == *junit* ]]; then break; fi
            done
            print -r -- "$shown"
            zpty -d shell""", env=e2e.clean_environment(HOME=self.folder, PATH=BIN, TERM="vt100"), timeout=60)
        self.assertIn("json", done.stdout)
        self.assertIn("junit", done.stdout)

    def test_fish(self):
        self.needs("fish")
        path = self.script("fish")

        def offers(line):
            done = self.run_program("fish", "--no-config", "-c", f"source {path}; complete -C '{line}'", env=e2e.clean_environment(HOME=self.folder, PATH=BIN))
            return {row.split("\t")[0] for row in done.stdout.splitlines()}

        self.assertEqual(offers("kshim sc"), {"scan"})
        self.assertEqual(offers("kshim scan --format j"), {"json", "jsonl", "junit"})
        self.assertIn("--expect", offers("kshim scan --exp"))

    def test_every_option_of_the_help(self):
        """bash is offered what --help shows, of every command, and the command takes each value that is offered."""
        self.script("bash")
        for command in re.findall(r"(?m)^  (\w+) ", self.kshim("help").stdout.split("Examples:")[0]):
            if command == "help":
                continue
            shown = set(re.findall(r"(?m)^  (?:-\w, )?(--[a-z0-9-]+)", self.kshim(command, "--help").stdout))
            self.assertLessEqual(shown, self.offers(f"kshim {command} --"), command)
            for option in ("--format", "--fail-on", "--status"):
                if option not in shown:
                    continue
                values = self.offers(f"kshim {command} {option} ")
                self.assertTrue(values, (command, option))
                for value in values:
                    self.assertEqual(self.kshim(command, option, value, "--help").returncode, 0, (command, option, value))

    def test_paths(self):
        """What the shells complete themselves."""
        self.script("bash")
        (self.folder / "thing.so").write_text("")
        (self.folder / "things").mkdir()
        for line, found in (("kshim scan -o thi", {"thing.so", "things"}), ("kshim doctor --root thi", {"things"})):
            self.assertEqual(self.offers(line), found)


class Alone(Plugged):
    """`kshim scan` without a target, and without a path."""

    def scan(self, *argv, status=0, **env):
        done = self.kshim("scan", "--format", "json", *argv, env=e2e.clean_environment(**env))
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout), done.stderr

    def gpus(self, devices, **more):
        e2e.not_instrumented(self)
        return {"LD_LIBRARY_PATH": e2e.SIMULATOR, "KSHIM_SIM_DEVICES": devices, **more}

    def test_gpus_of_this_machine(self):
        found, said = self.scan(SAXPY, status=1, **self.gpus("12.0"))
        self.assertEqual((found["targets"], [each["cause"] for each in found["findings"]]), (["sm_120"], ["no-image-for-arch"]))
        self.assertIn("(12.0)", said)
        found, _ = self.scan(SAXPY, **self.gpus("8.0;9.0;9.0"))
        self.assertEqual(found["targets"], ["sm_80", "sm_90"])

    def test_driver_of_this_machine(self):
        found, _ = self.scan(SAXPY, status=1, **self.gpus("9.0", KSHIM_SIM_DRIVER="12.4"))
        self.assertEqual((found["driver"], [each["cause"] for each in found["findings"]]), ("12.4", ["driver-too-old"]))
        found, _ = self.scan("--driver", "13.0", SAXPY, **self.gpus("9.0", KSHIM_SIM_DRIVER="12.4"))
        self.assertEqual((found["driver"], found["findings"]), ("13.0", []))

    def test_a_target_or_a_list_is_asked_instead(self):
        found, _ = self.scan("--target", "8.0", SAXPY, **self.gpus("12.0"))
        self.assertEqual(found["targets"], ["sm_80"])
        found, _ = self.scan("--expect", "8.0", SAXPY, **self.gpus("12.0"))
        self.assertEqual(found["targets"], [])

    def test_without_a_gpu(self):
        found, _ = self.scan(SAXPY)
        self.assertEqual((found["targets"], found["findings"]), ([], []))

    def environment(self):
        venv = self.folder / "venv"
        done = self.run_program(sys.executable, "-m", "venv", "--without-pip", venv)
        self.assertEqual(done.returncode, 0, done.stderr)
        [packages] = venv.glob("lib/python*/site-packages")
        (packages / "things").mkdir()
        shutil.copy(SAXPY, packages / "things" / "_C.so")
        return venv

    def test_the_active_environment(self):
        venv = self.environment()
        found, said = self.scan(VIRTUAL_ENV=venv)
        self.assertEqual([each["path"] for each in found["objects"]], [str(next(venv.glob("lib/python*/site-packages/things/_C.so")))])
        self.assertIn("--target", said)  # there is no GPU here
        self.assertIn(str(venv), said)
        found, _ = self.scan(status=1, VIRTUAL_ENV=venv, **self.gpus("12.0"))
        self.assertEqual(found["targets"], ["sm_120"])
        found, _ = self.scan(PATH=f"{venv}/bin:{os.environ['PATH']}")
        self.assertEqual(len(found["objects"]), 1)

    def test_no_environment(self):
        done = self.kshim("scan", env=e2e.clean_environment(PATH=self.folder))
        self.assertEqual(done.returncode, 3)
        self.assertIn("PATH", done.stderr)


class Requirements(Plugged):
    """python -m kshim.fleet requirements: what files ask of a GPU, and whether they keep what is declared."""

    def export(self, to, *argv, status=0):
        done = self.fleet("requirements", "--to", to, *argv)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def test_what_is_written_holds(self):
        for to in ("nvidia-require", "conda", "wheel-variant"):
            for file in (SAXPY, ATTENTION, HISTOGRAM):
                self.assertTrue(self.export(to, "--declared", self.export(to, file), file).startswith("ok:"), to)
        self.assertEqual(self.export("wheel-variant", SAXPY), "nvidia :: sm_arch :: 80_real\nnvidia :: sm_arch :: 90_real\n")
        self.assertEqual(self.export("conda", ATTENTION), "__cuda_arch >=9.0,<=9.0\n")
        self.assertEqual(self.export("conda", SAXPY), "__cuda_arch >=8.0,<=9.0\n")  # a Jetson (8.7) has no x86 processor
        self.assertEqual(self.export("nvidia-require", ATTENTION).splitlines()[0], 'NVIDIA_REQUIRE_ARCH="arch>=9.0,arch<=9.0"')

    def test_runtime_needs_a_driver(self):
        """Of its major version, or the program ends with 35 where the image was started."""
        [_, cuda] = self.export("nvidia-require", SAXPY).splitlines()
        major = cuda.split("cuda>=")[1].split(".")[0]
        scanned = [self.kshim("scan", "--target", "sm_80", "--driver", f"{driver}.0", SAXPY).returncode for driver in (int(major) - 1, int(major))]
        self.assertEqual(scanned, [1, 0])

    def test_no_gpu_in_common(self):
        """An empty requirement would let the image start everywhere."""
        for file in (ATTENTION, SCALE):
            self.export("nvidia-require", file)
        self.assertEqual(self.export("nvidia-require", ATTENTION, SCALE, status=1), "")

    def test_ptx_needs_a_driver(self):
        """Of all GPUs that compile it; GPUs with SASS take an older one."""
        [isa] = [image["isa"] for image in json.loads(self.kshim("scan", "--format", "json", HISTOGRAM).stdout)["objects"][0]["images"]]
        toolkits = json.loads((e2e.SOURCE / "knowledge" / "toolkits.json").read_text())["toolkits"]
        cuda = min((tuple(map(int, row["cuda"].split("."))), row["cuda"]) for row in toolkits if row["isa"] == isa)[1]
        self.assertEqual(self.export("nvidia-require", HISTOGRAM).splitlines()[1], f'NVIDIA_REQUIRE_CUDA="cuda>={cuda}"')
        oldest = self.export("nvidia-require", SAXPY).split("cuda>=")[1].split('"')[0]  # for its runtime
        self.assertLessEqual(float(oldest), float(cuda))
        both = self.export("nvidia-require", SAXPY) + f'NVIDIA_REQUIRE_CUDA="cuda>={cuda}"'  # both have to hold
        self.assertTrue(self.export("nvidia-require", "--declared", both, SAXPY).startswith("ok:"))

    def test_promises(self):
        said = self.export("conda", "--declared", "__cuda_arch >=7.5", SAXPY, status=1)
        self.assertRegex(said, r"error: .*\b7\.5\b.*\b10\.0\b")
        self.assertIn("there and not promised: 9.0", self.export("conda", "--declared", "__cuda_arch ==8.0|==8.6|==8.9", SAXPY).replace("8.8, ", ""))
        (self.folder / "variant").write_text("nvidia :: sm_arch :: 80_real\nnvidia :: sm_arch :: 120_real\n")
        said = self.export("wheel-variant", "--declared", "@variant", SAXPY, status=1)
        self.assertRegex(said, r"(?m)^error: .*120_real$")
        self.assertRegex(said, r"(?m)^note: .*90_real$")
        self.export("conda", "--declared", "anything", SAXPY, status=2)
        self.assertEqual(self.fleet("requirements", "--declared", ">=7.5", SAXPY).returncode, 2)

    def verify(self, *paths, status):
        done = self.fleet("requirements", "--verify", *paths)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def test_what_a_wheel_declares(self):
        """PEP 825: variant.json of the wheel. Each wheel is held to its own."""
        wheels = []
        for label, archs in (("sass", ["80_real", "90_real"]), ("more", ["80_real", "120_real"])):
            wheel = self.wheel(_C=SAXPY)
            wheels.append(wheel.rename(wheel.with_name(f"things-1.2-cp311-cp311-linux_x86_64-{label}.whl")))
            with zipfile.ZipFile(wheels[-1], "a") as out:
                out.writestr("things-1.2.dist-info/variant.json", json.dumps(
                    {"default-priorities": {"namespace": ["nvidia"]}, "variants": {label: {"nvidia": {"sm_arch": archs, "cuda_version_lower_bound": ["12.8"]}}}}))
        self.assertRegex(self.verify(wheels[0], status=0), r"^ok: .*-sass\.whl!things-1\.2\.dist-info/variant\.json")
        said = self.verify(*wheels, status=1)
        self.assertRegex(said, r"(?m)^error: .*-more\.whl.*: 120_real$")
        self.verify(self.wheel(_C=SAXPY), status=3)  # says nothing
        self.assertEqual(self.fleet("requirements", "--to", "conda", "--verify", wheels[0]).returncode, 3)

    def test_what_a_conda_package_declares(self):
        """.tar.bz2 of conda; a .conda is a zip of two such archives."""
        for depends, status in (([self.export("conda", SAXPY).strip()], 0), (["python", "__cuda_arch >=7.5"], 1), (["python"], 3)):
            said = self.verify(self.conda(SAXPY, depends), status=status)
            self.assertEqual("7.5" in said, status == 1, said)

    def conda(self, file, depends, run_exports=None):
        path = self.folder / "libthings-1.2-h0_0.tar.bz2"
        with tarfile.open(path, "w:bz2") as out:
            for name, data in (("info/index.json", json.dumps({"name": "libthings", "version": "1.2", "depends": depends}).encode()),
                               ("info/run_exports.json", json.dumps(run_exports or {}).encode()), ("lib/libthings.so", file.read_bytes())):
                row = tarfile.TarInfo(name)
                row.size = len(data)
                out.addfile(row, io.BytesIO(data))
        return path

    def test_what_those_who_build_with_a_conda_package_get(self):
        """run_exports become their dependencies: no GPU may be promised that the library has nothing for."""
        for kind in ("weak", "strong_constrains"):
            said = self.verify(self.conda(SAXPY, ["python"], {kind: ["libthings >=1.2", "__cuda_arch >=8.0"]}), status=1)
            self.assertRegex(said, r"^error: .*!info/run_exports\.json .*\b10\.0\b")
        self.verify(self.conda(SAXPY, ["python"], {"weak": ["__cuda_arch >=8.0,<=9.0"]}), status=0)

    def test_the_driver_that_a_package_asks_for(self):
        """`__cuda` and cuda_version_lower_bound let in drivers that have to read the PTX; SASS does without."""
        needs = self.export("nvidia-require", HISTOGRAM).split("cuda>=")[1].split('"')[0]
        older = f"{int(needs.partition('.')[0]) - 1}.0"
        self.verify(self.conda(HISTOGRAM, [f"__cuda >={needs}"]), status=0)
        self.assertRegex(self.verify(self.conda(HISTOGRAM, [f"__cuda >={older}"]), status=1), rf"^error: .*CUDA {older}\b.*\b{needs}\b")
        self.verify(self.conda(SAXPY, [f"__cuda >={older}"]), status=0)
        self.verify(self.conda(HISTOGRAM, [f"__cuda >={older}", "__cuda_arch <5.0"]), status=0)  # no GPU that compiles it
        self.verify(self.conda(HISTOGRAM, ["__cuda twelve"]), status=2)
        self.export("conda", "--declared", f"__cuda >={older}", HISTOGRAM, status=1)
        for bound, status in ((needs, 0), (older, 1)):
            wheel = self.wheel(_C=HISTOGRAM)
            archs = [line.split()[-1] for line in self.export("wheel-variant", HISTOGRAM).splitlines()]
            with zipfile.ZipFile(wheel, "a") as out:
                out.writestr("things-1.2.dist-info/variant.json", json.dumps({"variants": {"x": {"nvidia": {"sm_arch": archs, "cuda_version_lower_bound": [bound]}}}}))
            self.verify(wheel, status=status)

    def test_ptx_serves_what_comes(self):
        text = self.export("conda", HISTOGRAM)
        self.assertRegex(text, r"^__cuda_arch >=\d+\.\d$")

    def test_nfd(self):
        (self.folder / "nfd.yaml").write_text(self.export("nfd", SAXPY))
        [compatibility] = load_yaml(self.folder / "nfd.yaml")["compatibilities"]
        [rule] = compatibility["rules"]
        majors = [entry["matchFeatures"][0]["matchExpressions"]["nvidia.com/gpu.compute.major"]["value"] for entry in rule["matchAny"]]
        self.assertEqual(majors, [["8"], ["9"]])

    def test_what_an_artifact_of_nfd_promises(self):
        """As text that goes with the files: the artifact lies beside the image in its registry."""
        def declared(rules, status):
            (self.folder / "nfd.json").write_text(json.dumps({"version": "v1alpha1", "compatibilities": [{"rules": rules}]}))
            return self.export("nfd", "--declared", "@nfd.json", SAXPY, status=status)

        def gpu(major, minor=None, op="In"):
            labels = {"nvidia.com/gpu.compute.major": {"op": op, "value": [major]}, "nvidia.com/gpu.product": {"op": "In", "value": ["any"]}}
            if minor:
                labels["nvidia.com/gpu.compute.minor"] = {"op": "In", "value": [minor]}
            return {"matchFeatures": [{"feature": "local.label", "matchExpressions": labels}]}

        self.export("nfd", "--declared", self.export("nfd", SAXPY), SAXPY)
        self.assertRegex(declared([gpu("9", "0")], 0), r"(?m)^note: .*\b8\.6\b")
        self.assertRegex(declared([gpu("12")], 1), r"(?m)^error: .*: 12\.0, 12\.1$")
        declared([{"matchAny": [gpu("8", "0"), gpu("9", "0")]}], 0)
        declared([{"matchAny": [gpu("8", "0"), gpu("12", "0")]}], 1)
        declared([{**gpu("8"), "matchAny": [gpu("8", "0"), gpu("12", "0")]}], 0)  # both have to hold
        declared([gpu("8", op="Gt"), gpu("10", op="Lt")], 0)
        declared([gpu("8", op="Like")], 2)
        self.export("nfd", "--declared", "version: v1alpha1", SAXPY, status=2)

    def test_nothing_to_say(self):
        self.export("conda", e2e.KSHIM, status=3)


class Meant(Plugged):
    """A slip of the pen is named."""

    def test_did_you_mean(self):
        for argv, meant in ((("scna",), "scan"), (("analyse",), "analyze"), (("scan", "--targets", "8.0", SCALE), "--target"), (("scan", "--expct", "8.0", SCALE), "--expect"),
                            (("run", "--fail-on", "errors", "--", "true"), "error"), (("scan", "--format", "markdwon", SCALE), "markdown"),
                            (("doctor", "--format", "jsn"), "json"), (("explain", "--format", "txt", "209"), "text"), (("diff", "--format", "htlm", SCALE, SCALE), "html")):
            done = self.kshim(*argv)
            self.assertIn(f"did you mean `{meant}`", done.stderr, argv)
            self.assertEqual(done.returncode, 125 if argv[0] == "run" else 2)
        self.assertNotIn("did you mean", self.kshim("frobnicate").stderr)
        self.assert_says(self.kshim("--knowledge", "x", "scan"), 2, "--knowledge", "follow the command")
        self.assert_says(self.kshim("run", "--report", "--", "true"), 125, "--report", "missing")
        self.assert_says(self.kshim("scan", "-j", "many", SCALE), 2, "--jobs", "many")

    def test_explain_reads_a_file(self):
        (self.folder / "train.log").write_text("RuntimeError: CUDA error: no kernel image is available for execution on the device\n")
        done = self.kshim("explain", "--format", "json", "train.log")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, self.kshim("explain", "--format", "json", "--log", "train.log").stdout)
        (self.folder / "209").write_text("nothing\n")
        self.assertEqual(self.kshim("explain", "209").returncode, 0)

    def test_scan_of_reports(self):
        shutil.copytree(e2e.SOURCE / "tests" / "golden" / "no-image-for-arch", self.folder / "reports")
        done = self.kshim("scan", "reports")
        self.assertEqual(done.returncode, 3)
        self.assertIn("kshim analyze reports", done.stderr)


if __name__ == "__main__":
    e2e.main()
