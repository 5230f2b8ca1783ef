#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/recipes: what a site copies to bring the shim to its users. Slurm's scripts under a slurmctld and slurmd of this test's own, the
modulefile under Lmod, the pod's container under podman, Kubernetes' objects against its published schemas; beside a preload of XALT's
shape. Each case is skipped where its program is not installed."""
import glob
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

import e2e
import podman_here

SAXPY = e2e.SAMPLES / "01_missing_architecture" / "saxpy"  # sm_80 and sm_90
JOB_RECORD = e2e.PROGRAMS / "libe2e_job_record.so"
e2e.require(e2e.KSHIM, e2e.SHIM, SAXPY, e2e.SIMULATOR / "libcuda.so.1")
RECIPES = e2e.SOURCE / "docs" / "recipes"


class Recipe(e2e.Case):
    def setUp(self):
        super().setUp()
        e2e.not_instrumented(self)

    def causes(self, *reports):
        done = self.kshim("analyze", "--format", "json", "--trust-reports", *reports)
        return [finding["cause"] for finding in json.loads(done.stdout)["findings"] if finding["severity"] == "error"]


class Modules(Recipe):
    """The modulefile, in a login shell with Lmod."""

    def setUp(self):
        super().setUp()
        found = glob.glob("/usr/share/lmod/lmod/init/bash")
        if not found:
            self.skipTest("no Lmod")
        self.init = found[0]
        (self.folder / "modules" / "kshim").mkdir(parents=True)
        shutil.copy(RECIPES / "lmod-kshim.lua", self.folder / "modules" / "kshim" / "1.0.lua")
        (self.folder / "modules" / "xalt").mkdir()
        (self.folder / "modules" / "xalt" / "3.2.lua").write_text(f'prepend_path("LD_PRELOAD", "{JOB_RECORD}")\n')

    def shell(self, script, **env):
        where = e2e.simulated("12.0", KSHIM_LIB=e2e.SHIM.parent, HOME=self.folder, **env)
        done = self.run_program("bash", "--norc", "-c", f"source {self.init} && module use {self.folder}/modules && {script}", env=where)
        self.assertNotIn("Lmod has detected", done.stderr)
        return done

    def test_load_and_unload(self):
        done = self.shell(f'module load kshim && {SAXPY}; module unload kshim; echo "left:$LD_PRELOAD:$KSHIM_REPORT"')
        self.assertIn("left::", done.stdout, done.stderr)
        self.assertEqual(self.causes(*(self.folder / "kshim-report").iterdir()), ["no-image-for-arch"])

    def test_beside_xalt(self):
        """In either order, both are loaded; each unloads by itself."""
        for first, second in (("kshim", "xalt"), ("xalt", "kshim")):
            shutil.rmtree(self.folder / "kshim-report", ignore_errors=True)
            (self.folder / "record").unlink(missing_ok=True)
            done = self.shell(f'module load {first} {second} && echo "both:$LD_PRELOAD" && JOB_RECORD=record {SAXPY}; module unload xalt; echo "left:$LD_PRELOAD"')
            self.assertIn(f"both:{JOB_RECORD}:{e2e.SHIM}", done.stdout, done.stderr)
            self.assertIn(f"left:{e2e.SHIM}\n", done.stdout)
            self.assertEqual((self.folder / "record").read_text(), "start\nend\n")
            self.assertEqual(self.causes(*(self.folder / "kshim-report").iterdir()), ["no-image-for-arch"])


class Xalt(Recipe):
    """XALT itself, built from https://github.com/xalt/xalt: `configure --with-transmission=file --with-MySQL=no --with-supportCURL=no
    --with-trackGPU=no --with-syshostConfig=hardcode:here --with-config=Config/rtm_config.py`, `make install`."""

    @unittest.skipUnless(os.environ.get("KSHIM_XALT"), "KSHIM_XALT names no libxalt_init.so")
    def test_beside_the_real_one(self):
        xalt = os.environ["KSHIM_XALT"]
        for number, preload in enumerate((f"{xalt}:{e2e.SHIM}", f"{e2e.SHIM}:{xalt}")):
            records, reports = self.folder / f"xalt{number}", self.folder / f"reports{number}"
            records.mkdir()
            done = self.run_program(SAXPY, env=e2e.simulated("12.0", LD_PRELOAD=preload, KSHIM_REPORT=reports / "%p.jsonl", XALT_EXECUTABLE_TRACKING="yes",
                                                             XALT_FILE_PREFIX=records))
            self.assertEqual(done.returncode, 1, done.stderr)
            record, = (json.loads(path.read_text()) for path in records.rglob("*.json"))
            self.assertEqual(record["userT"]["exec_path"], str(SAXPY.resolve()))
            self.assertEqual(self.causes(*reports.iterdir()), ["no-image-for-arch"])


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


CONFIGURATION = """ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/slurmd
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/daemon.pid
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/daemon.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
Prolog={folder}/prolog
PrologFlags=Alloc
TaskProlog={folder}/task-prolog
Epilog={folder}/epilog
NodeName=here NodeHostname={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


class SlurmProlog(Recipe):
    # shows: Slurm's prolog: a link or a folder that a user lays in the place of a coming job's
    @unittest.skipUnless(os.getuid() == 0, "needs root")
    def test_what_users_lay_there(self):
        spool, target = self.folder / "spool", self.folder / "target"
        target.mkdir(mode=0o700)
        env = e2e.clean_environment(KSHIM_SPOOL=spool, KSHIM_KEPT=self.folder / "kept", SLURM_JOB_ID="42", SLURM_JOB_UID="4711")

        def prolog():
            self.assertEqual(self.run_program("sh", RECIPES / "slurm-prolog.sh", env=env).returncode, 0)

        prolog()
        self.assertEqual(((spool / "42").stat().st_uid, (spool / "42").stat().st_mode & 0o777), (4711, 0o700))
        self.run_program("sh", RECIPES / "slurm-epilog.sh", env=env)
        self.assertFalse((spool / "42").exists())
        for mode in (0o755, 0o1777):
            spool.chmod(mode)
            (spool / "42").symlink_to(target)
            prolog()
            self.assertEqual((target.stat().st_uid, target.stat().st_mode & 0o777), (0, 0o700))
            self.run_program("sh", RECIPES / "slurm-epilog.sh", env=env)
            self.assertFalse((self.folder / "kept").exists())
            (spool / "42").unlink()
        prolog()
        self.assertFalse((spool / "42").exists(), "anybody could have laid it there")


class Slurm(Recipe):
    """The prolog, task prolog and epilog in a cluster of one node, this machine."""

    def setUp(self):
        super().setUp()
        if os.getuid() != 0 or not all(shutil.which(name) for name in ("munged", "slurmctld", "slurmd", "srun")):
            self.skipTest("no Slurm and munge, or not root")
        self.folder.chmod(0o755)
        for name in ("state", "slurmd"):
            (self.folder / name).mkdir()
        places = f"export KSHIM_SPOOL={self.folder}/spool KSHIM_KEPT={self.folder}/kept KSHIM_SHIM={e2e.SHIM}"
        for name in ("prolog", "task-prolog", "epilog"):
            (self.folder / name).write_text(f"#!/bin/sh\n{places}\nexec {RECIPES}/slurm-{name}.sh\n")
            (self.folder / name).chmod(0o755)
        controller, daemon = free_ports(2)
        host = socket.gethostname().partition(".")[0]
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(folder=self.folder, host=host, controller=controller, daemon=daemon))
        (self.folder / "munge.key").write_bytes(os.urandom(1024))
        (self.folder / "munge.key").chmod(0o600)
        self.env = e2e.simulated("12.0", SLURM_CONF=self.folder / "slurm.conf")
        self.start("munged", "--foreground", "--force", "--socket", "munge.socket", "--key-file", "munge.key", "--pid-file", "munge.pid", "--log-file", "munge.log",
                   "--seed-file", "munge.seed")
        self.start("slurmctld", "-D")
        self.start("slurmd", "-D", "-N", "here")
        for _ in range(300):
            if "idle" in self.run_program("sinfo", "-h", "-o", "%T", env=self.env).stdout:
                return
            time.sleep(0.1)
        self.skipTest("Slurm does not start here: " + "".join(path.read_text()[-600:] for path in self.folder.glob("*.log")))

    def start(self, *argv):
        process = subprocess.Popen(argv, cwd=self.folder, env=e2e.clean_environment(SLURM_CONF=self.folder / "slurm.conf"), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def stop():
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

        self.addCleanup(stop)

    def srun(self, *argv, **env):
        return self.run_program("srun", "-n1", *argv, env={**self.env, **{name: str(value) for name, value in env.items()}})

    def kept(self, jobs):
        """What the epilogs of that many jobs moved; they run after srun has ended."""
        for _ in range(300):
            done = self.run_program("squeue", "-h", "-t", "all", "-o", "%T", env=self.env).stdout.split()
            if "COMPLETING" not in done and not any((self.folder / "spool").iterdir()):
                break
            time.sleep(0.1)
        found = sorted((self.folder / "kept").glob("*/*/*.jsonl"))
        self.assertEqual(len(found), jobs, list(self.folder.rglob("*.jsonl")))
        return found

    def test_a_job_that_fails(self):
        done = self.srun(SAXPY)
        self.assertNotEqual(done.returncode, 0)
        [report] = self.kept(1)
        self.assertEqual(self.causes(report), ["no-image-for-arch"])
        process = json.loads(report.read_text().splitlines()[0])
        self.assertIn(process["env"]["SLURM_JOB_ID"], report.parts)

    def test_a_job_without_cuda(self):
        done = self.srun("sh", "-c", "echo fine")
        self.assertEqual((done.returncode, done.stdout), (0, "fine\n"), done.stderr)
        self.kept(0)

    def test_beside_what_the_user_preloads(self):
        done = self.srun("sh", "-c", f"echo $LD_PRELOAD; {SAXPY}", LD_PRELOAD=JOB_RECORD, JOB_RECORD=self.folder / "record")
        self.assertIn(f"{JOB_RECORD}:{e2e.SHIM}", done.stdout)
        self.kept(1)


def kubernetes():
    """(module, loader of YAML), or the reason to skip."""
    try:
        import kubernetes_validate
        from ruamel.yaml import YAML
    except ImportError:
        raise unittest.SkipTest("no Python package kubernetes-validate; tools/setup installs it") from None
    return kubernetes_validate, lambda path: list(YAML(typ="safe").load_all(path.read_text()))


class Kubernetes(Recipe):
    RELEASE = "1.37"

    def test_schemas(self):
        validate, load = kubernetes()
        kinds = []
        for name in ("kubernetes-pod.yaml", "kubernetes-site.yaml"):
            for resource in load(RECIPES / name):
                validate.validate(resource, self.RELEASE, strict=True)
                kinds.append(resource["kind"])
        self.assertEqual(kinds, ["Pod", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"])

    def test_the_schemas_refuse_what_is_wrong(self):
        validate, load = kubernetes()
        [pod] = load(RECIPES / "kubernetes-pod.yaml")
        pod["spec"]["containers"][0]["volumeMount"] = pod["spec"]["containers"][0].pop("volumeMounts")
        with self.assertRaises(validate.ValidationError):
            validate.validate(pod, self.RELEASE, strict=True)

    def test_the_container_of_the_pod(self):
        """Its command, variables and mounts, under podman: there is no kubelet here."""
        _, load = kubernetes()
        if why := podman_here.works(self.folder):
            self.skipTest(f"podman starts no container here: {why}")
        [pod] = load(RECIPES / "kubernetes-pod.yaml")
        container = pod["spec"]["containers"][0]
        volumes = {}
        for volume in pod["spec"]["volumes"]:
            volumes[volume["name"]] = self.folder / volume["name"]
            volumes[volume["name"]].mkdir()
            if "configMap" in volume:
                self.run_program("strip", "-o", volumes[volume["name"]] / "libkshim.so", e2e.SHIM)
                self.assertLess((volumes[volume["name"]] / "libkshim.so").stat().st_size, 1 << 20, "what a ConfigMap holds")
        options = ["-e", "KSHIM_SIM_DEVICES=12.0"]
        for row in container["env"]:
            options += ["-e", f"{row['name']}={row['value']}"]
        for mount in container["volumeMounts"]:
            options += ["-v", f"{volumes[mount['name']]}:{mount['mountPath']}:{'ro' if mount.get('readOnly') else 'rw'}"]
        root = self.folder / "root"
        podman_here.add(root, SAXPY, container["command"][0])
        for name in ("libcuda.so.1", "libnvidia-ml.so.1"):  # a simulated driver
            podman_here.add(root, e2e.SIMULATOR / name, f"/usr/lib/x86_64-linux-gnu/{name}")
        (root / "etc").mkdir(exist_ok=True)
        done = podman_here.run(self.folder, root, *container["command"], options=options)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.causes(*volumes["reports"].iterdir()), ["no-image-for-arch"], done.stderr)


class Said(e2e.Case):
    def test_each_recipe_says_how_it_was_tried(self):
        """In itself and on the page, so that a copy does not lose it."""
        page = (e2e.SOURCE / "docs" / "containers.md").read_text()
        for recipe in RECIPES.iterdir():
            self.assertRegex(recipe.read_text(), r"(?m)^(#|--) Tried \(tests/e2e/recipes\.py\): (run|checked)", recipe.name)
            self.assertIn(f"recipes/{recipe.name})", page)


if __name__ == "__main__":
    e2e.main()
