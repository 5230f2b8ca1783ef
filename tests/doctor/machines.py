#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kshim doctor finds on made-up machines, and what it says of each. One machine a way to be broken."""
import os
import struct

import e2e
import fixture

GUEST = e2e.PROGRAMS / "e2e_guest"

LIB = f"/usr/lib/{fixture.TRIPLET[fixture.MACHINE]}"


class Hardware(fixture.MachineCase):
    def test_nothing_at_all(self):
        found = self.doctor()
        self.assertEqual((found["gpus"], found["libraries"], self.ids(found)), ([], [], []))
        self.assertEqual(found["driver"], {"kernel_module": None, "cuda_version": None, "ptx_isa": None, "source": None})
        self.assertIn("no-libcuda", self.ids(found, "info"))

    def test_a_healthy_machine(self):
        self.driver()
        found = self.doctor()
        self.assertEqual(self.ids(found), [])
        self.assertEqual([gpu["name"] for gpu in found["gpus"]], ["NVIDIA A100-SXM4-40GB"])
        self.assertEqual(found["gpus"][0]["uuid"], "GPU-11111111-2222-3333-4444-555555555555")
        self.assertEqual(found["gpus"][0]["pci"], "0000:65:00.0")
        self.assertEqual(found["driver"]["kernel_module"], "580.82.07")
        self.assertEqual((found["driver"]["cuda_version"], found["driver"]["ptx_isa"]), ("13.0", "9.0"))
        library = found["libraries"][0]
        self.assertEqual((library["name"], library["path"], library["how"], library["version"]),
                         ("libcuda.so.1", f"{LIB}/libcuda.so.1", "ld.so.cache", "580.82.07"))

    def test_older_branches_serve_older_cuda(self):
        self.driver("535.183.01", "535.183.01")
        self.assertEqual(self.doctor()["driver"]["cuda_version"], "12.2")

    def test_a_gpu_without_a_driver(self):
        self.put("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
        self.put("/sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n")
        self.put("/sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n")  # its sound
        self.put("/sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n")
        self.put("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n")
        self.put("/sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n")
        found = self.doctor(status=1)
        self.assertEqual(found["place"]["pci"], ["0000:01:00.0"])
        self.assertEqual([(gpu["pci"], gpu["name"], gpu["compute_capability"]) for gpu in found["gpus"]], [("0000:01:00.0", None, None)])
        self.assertEqual(self.ids(found, "error"), ["no-kernel-module", "no-libcuda"])

    def test_a_gpu_on_the_bus_is_named_by_the_list_of_pci(self):
        self.put("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
        self.put("/sys/bus/pci/devices/0000:01:00.0/device", "0x1d16\n")
        self.put("/sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n")
        for names in ("", "10de  NVIDIA Corporation", "\n10de  NVIDIA Corporation\n\t1d1", "\n10de  N\n\t1d16\n", "\n10de  N\n\t1d17  GP107M [GeForce MX350]\n"):
            self.put("/usr/share/misc/pci.ids", names)
            self.assertIsNone(self.doctor(status=1)["gpus"][0]["name"], names)
        self.put("/usr/share/misc/pci.ids", "# comment\n1002  AMD\n\t1d16  wrong\n10de  NVIDIA Corporation\n\t1d12  GP108M [GeForce MX150]\n"
                 "\t\t103c 8511  sub\n\t1d16  GP108M [GeForce MX330]\n10df  Emulex\n\t1d16  wrong\n")
        gpu = self.doctor(status=1)["gpus"][0]
        self.assertEqual((gpu["name"], gpu["compute_capability"], gpu["compute_capability_by"]), ("GP108M [GeForce MX330]", "6.1", "name"))

    def test_a_driver_without_its_library(self):
        self.driver()
        (self.root / LIB.lstrip("/") / "libcuda.so.1").unlink()
        self.assertEqual(self.ids(self.doctor(status=1), "error"), ["no-libcuda"])

    def test_two_halves_of_two_drivers(self):
        self.driver(version="570.133.20", library="580.82.07")
        found = self.doctor(status=1)
        self.assertEqual(self.ids(found, "error"), ["driver-mismatch"])
        self.assertIn("570.133.20", self.text_of(found, "driver-mismatch"))

    def test_forward_compatibility(self):
        self.driver(version="535.183.01", library="535.183.01")
        self.library("/usr/local/cuda-13.0/compat/libcuda.so.580.82.07", "/usr/local/cuda-13.0/compat/libcuda.so.1")
        found = self.doctor(LD_LIBRARY_PATH="/usr/local/cuda-13.0/compat")
        self.assertIn("cuda-compat", self.ids(found, "warning"))
        self.assertEqual(found["libraries"][0]["how"], "LD_LIBRARY_PATH")

    def test_a_stub(self):
        self.driver()
        self.library("/usr/local/cuda/lib64/stubs/libcuda.so", "/usr/local/cuda/lib64/stubs/libcuda.so.1")
        found = self.doctor(status=1, LD_LIBRARY_PATH="/usr/local/cuda/lib64/stubs")
        self.assertEqual(self.ids(found, "error"), ["stub-driver"])

    def test_a_folder_of_stubs_that_does_not_hit_yet(self):
        self.driver()
        self.library("/usr/local/cuda/lib64/stubs/libcuda.so")
        found = self.doctor(LD_LIBRARY_PATH="/usr/local/cuda/lib64/stubs")
        self.assertEqual(self.ids(found), ["stub-folder"])

    def test_mig(self):
        self.driver()
        self.put("/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access")
        found = self.doctor()
        self.assertTrue(found["gpus"][0]["mig"])
        self.assertIn("mig", self.ids(found, "info"))

    def test_mig_that_is_off(self):
        self.driver()
        self.put("/proc/driver/nvidia/capabilities/gpu0/mig/config")
        self.assertFalse(self.doctor()["gpus"][0]["mig"])

    def test_wsl(self):
        self.put("/dev/dxg")
        self.library("/usr/lib/wsl/lib/libcuda.so.1")
        self.cache("/usr/lib/wsl/lib/libcuda.so.1")
        self.assertEqual(self.ids(self.doctor()), [])

    def test_a_linux_driver_in_wsl(self):
        self.put("/proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x) (gcc 11)\n")
        self.library("/usr/lib/wsl/lib/libcuda.so.1")
        self.library(f"{LIB}/libcuda.so.550.54.14", f"{LIB}/libcuda.so.1")
        self.cache(f"{LIB}/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")
        self.assertEqual(self.ids(self.doctor(status=1), "error"), ["wsl-driver"])

    def test_wsl_that_is_not_searched(self):
        self.put("/dev/dxg")
        self.assertIn("wsl-no-driver", self.ids(self.doctor(status=1), "error"))

    def test_a_container_without_its_gpu(self):
        self.put("/.dockerenv")
        found = self.doctor(status=1, NVIDIA_VISIBLE_DEVICES="all")
        self.assertEqual(self.ids(found, "error"), ["container-without-gpu"])
        self.assertTrue(found["place"]["container"])

    def test_a_container_that_wants_none(self):
        self.put("/.dockerenv")
        self.assertEqual(self.ids(self.doctor(NVIDIA_VISIBLE_DEVICES="void")), [])

    def test_a_container_without_compute(self):
        self.driver()
        found = self.doctor(status=1, NVIDIA_VISIBLE_DEVICES="all", NVIDIA_DRIVER_CAPABILITIES="utility,graphics")
        self.assertEqual(self.ids(found, "error"), ["container-capabilities"])

    def test_missing_uvm(self):
        self.driver()
        (self.root / "dev/nvidia-uvm").unlink()
        self.assertEqual(self.ids(self.doctor()), ["no-uvm"])

    def test_hidden_devices(self):
        self.driver()
        for value in ("", "-1", "NoDevFiles"):
            self.assertEqual(self.ids(self.doctor(CUDA_VISIBLE_DEVICES=value)), ["hidden-devices"], value)
        self.assertEqual(self.ids(self.doctor(CUDA_VISIBLE_DEVICES="0")), [])
        for value in ("1", "foo", "0,0", "1,0"):
            self.assertEqual(self.ids(self.doctor(CUDA_VISIBLE_DEVICES=value)), ["hidden-devices"], value)
        self.assertEqual(self.ids(self.doctor(CUDA_VISIBLE_DEVICES="0,7")), ["unknown-device"])
        self.assertEqual(self.ids(self.doctor(CUDA_VISIBLE_DEVICES="MIG-1c1b")), [])

    def test_a_machine_without_a_driver_is_not_called_fine(self):
        done = self.kshim("doctor", "--root", self.root)
        self.assertTrue(done.stdout.startswith("no GPU:"), done.stdout)
        self.driver()
        done = self.kshim("doctor", "--root", self.root)
        self.assertTrue(done.stdout.startswith("ok:"), done.stdout)

    def test_what_cannot_be_compared_is_not_doubted(self):
        self.assertNotIn("hidden-devices", self.ids(self.doctor(CUDA_VISIBLE_DEVICES="3")))
        self.assertIn("hidden-devices", self.ids(self.doctor(CUDA_VISIBLE_DEVICES="-1")))

    def test_switches_of_the_jit(self):
        self.driver()
        self.assertEqual(self.ids(self.doctor(CUDA_FORCE_PTX_JIT="1")), ["jit-switch"])
        self.assertEqual(self.ids(self.doctor(CUDA_FORCE_PTX_JIT="0")), [])

    def test_devices_are_asked_where_there_are_some(self):
        """The simulator's NVML: names and compute capabilities as nvidia-smi would say them."""
        e2e.require(e2e.SIMULATOR / "libnvidia-ml.so.1")
        done = self.kshim("doctor", "--format", "json", env=e2e.simulated("6.1;12.0"))
        found = fixture.json.loads(done.stdout)
        self.assertEqual([gpu["compute_capability"] for gpu in found["gpus"]], ["6.1", "12.0"])
        self.assertEqual((found["driver"]["source"], found["driver"]["cuda_version"]), ("NVML", "13.0"))
        self.assertIn("last-branch", self.ids(found, "info"))


class Software(fixture.MachineCase):
    def toolkit(self, folder, version, compiler=True):
        self.put(f"{folder}/version.json", '{"cuda" : {"name" : "CUDA SDK", "version" : "%s"}, "nvcc": {"version": "1.1.1"}}' % version)
        if compiler:
            self.put(f"{folder}/bin/nvcc", "#!/bin/sh\n", 0o755)
            self.put(f"{folder}/bin/ptxas", "#!/bin/sh\n", 0o755)

    def versions(self, found):
        return {toolkit["path"]: toolkit["version"] for toolkit in found["toolkits"]}

    def test_toolkits(self):
        self.toolkit("/usr/local/cuda-12.8", "12.8.1")
        self.toolkit("/opt/nvidia/cuda", "11.8.0")
        self.put("/usr/local/cuda-10.2/version.txt", "CUDA Version 10.2.89\n")
        self.put("/usr/local/cuda-12.4/include/cuda_runtime_api.h", "#define CUDART_VERSION  12040\n")
        (self.root / "usr/local/cuda").symlink_to("/usr/local/cuda-12.8")
        found = self.doctor(CUDA_HOME="/opt/nvidia/cuda")
        self.assertEqual(self.versions(found), {"/usr/local/cuda-12.8": "12.8", "/opt/nvidia/cuda": "11.8",
                                                "/usr/local/cuda-10.2": "10.2", "/usr/local/cuda-12.4": "12.4"})
        both = next(toolkit for toolkit in found["toolkits"] if toolkit["path"] == "/usr/local/cuda-12.8")
        self.assertEqual(sorted(both["known_by"]), ["/usr/local/cuda", "/usr/local/cuda-12.8"])

    def test_two_toolkits(self):
        self.toolkit("/opt/a", "12.8.0")
        self.toolkit("/opt/b", "13.0.0")
        found = self.doctor(PATH="/opt/b/bin", CUDA_HOME="/opt/a")
        self.assertEqual(self.ids(found), ["two-toolkits"])
        self.assertEqual([(row["program"], row["path"], row["version"]) for row in found["compilers"]], [("nvcc", "/opt/b/bin/nvcc", None), ("ptxas", "/opt/b/bin/ptxas", None)])

    def test_compilers_in_use(self):
        """As build systems and Triton choose them, with the release that stands in NVIDIA's own files."""
        for path, release in (("/usr/bin/ptxas", "12.0, V12.0.140"), ("/own/ptxas", "13.0, V13.0.88"),
                              ("/venv/lib/python3.11/site-packages/triton/backends/nvidia/bin/ptxas", "12.8, V12.8.93")):
            self.put(path, f"\x7fELF\0release notes\0Cuda compilation tools, release {release}\0", 0o755)
        for path in ("/usr/bin/c++", "/usr/bin/g++-12"):
            self.put(path, "\x7fELF", 0o755)
        self.wheel("/venv/lib/python3.11/site-packages", "triton", "3.5")
        found = self.doctor(PATH="/usr/bin", VIRTUAL_ENV="/venv", TRITON_PTXAS_PATH="/own/ptxas", NVCC_CCBIN="g++-12", CUDACXX="/gone/nvcc")
        self.assertEqual([(row["program"], row["path"], row["version"], row["known_by"]) for row in found["compilers"]],
                         [("ptxas", "/usr/bin/ptxas", "12.0.140", "PATH"), ("ptxas", "/own/ptxas", "13.0.88", "TRITON_PTXAS_PATH"),
                          ("c++", "/usr/bin/g++-12", None, "NVCC_CCBIN"), ("c++", "/usr/bin/c++", None, "PATH"),
                          ("ptxas", "/venv/lib/python3.11/site-packages/triton/backends/nvidia/bin/ptxas", "12.8.93", "triton")])

    def test_a_toolkit_that_is_gone(self):
        self.assertEqual(self.ids(self.doctor(CUDA_HOME="/usr/local/cuda-9.0")), ["toolkit-gone"])

    def test_a_toolkit_newer_than_the_driver(self):
        self.driver("535.183.01", "535.183.01")
        self.toolkit("/usr/local/cuda-12.8", "12.8.0")
        self.assertEqual(self.ids(self.doctor()), ["toolkit-newer-than-driver"])

    def test_a_driver_and_a_toolkit_newer_than_the_tables(self):
        self.driver("999.10", "999.10")
        self.toolkit("/usr/local/cuda-99.1", "99.1.0")
        self.assertIn("newer-toolkit", self.ids(self.doctor(), "info"))

    def test_a_toolkit_that_dropped_the_gpu(self):
        e2e.require(e2e.SIMULATOR / "libnvidia-ml.so.1")
        self.toolkit("/somewhere", "13.0.0")
        done = self.kshim("doctor", "--format", "json", env={**e2e.simulated("6.1"), "CUDA_HOME": str(self.root / "somewhere")})
        self.assertIn("12.9", str([check for check in fixture.json.loads(done.stdout)["findings"]
                                   if check["id"] == "toolkit-without-arch" and "somewhere" in check["text"]]))

    def wheel(self, site, name, version):
        self.put(f"{site}/{name.replace('-', '_')}-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n")

    def test_wheels(self):
        site = "/venv/lib/python3.11/site-packages"
        self.wheel(site, "torch", "2.9.1")
        self.wheel(site, "nvidia-cublas-cu12", "12.8.4.1")
        self.wheel(site, "requests", "2.0")
        self.library(f"{site}/nvidia/cublas/lib/libcublas.so.12")
        found = self.doctor(VIRTUAL_ENV="/venv")
        self.assertEqual(found["pythons"][0]["wheels"], [{"name": "nvidia-cublas-cu12", "version": "12.8.4.1"},
                                                         {"name": "torch", "version": "2.9.1"}])
        self.assertEqual(found["pythons"][0]["library_folders"], [f"{site}/nvidia/cublas/lib"])
        self.assertEqual(self.ids(found), [])
        self.wheel(site, "nvidia-cublas-cu11", "11.11.3.6")
        self.assertEqual(self.ids(self.doctor(VIRTUAL_ENV="/venv")), ["mixed-wheels"])

    def environment(self, prefix, package, arch, config="home = /usr/bin\nversion = 3.11.9\nuv = 0.13.9\n"):
        """A virtual environment with a package whose one file has PTX for `arch`."""
        site = f"{prefix}/lib/python3.11/site-packages"
        self.wheel(site, package, "1.0")
        self.put(f"{site}/{package}-1.0.dist-info/RECORD", f"{package}/code.fatbin,,\n")
        text = f".version 7.0\n.target sm_{arch}\n.address_size 64\n.visible .entry k()\n{{\nret;\n}}\n".encode().ljust(128, b"\0")
        entry = struct.pack("<HHIQIIHHIQQQQ", 1, 0x0101, 64, len(text), 0, 0, 0, 7, arch, 0, 0x11, 0, 0) + text
        self.put(f"{site}/{package}/code.fatbin", struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + entry)
        self.put(f"{prefix}/pyvenv.cfg", config)
        self.put("/usr/bin/python3.11", GUEST.read_bytes(), 0o755)
        (self.root / prefix.lstrip("/") / "bin").mkdir(parents=True)
        (self.root / prefix.lstrip("/") / "bin/python").symlink_to("/usr/bin/python3.11")

    def test_the_environment_that_is_named(self):
        self.driver()
        self.environment("/own", "torch", 80)
        self.environment("/other", "vllm", 120)
        for name in ("/other", "/other/bin/python"):
            found = self.doctor(name, status=1, VIRTUAL_ENV="/own")  # the stand-in for Python lacks its libraries
            self.assertEqual([(python["interpreter"], python["version"], python["manager"]) for python in found["pythons"]],
                             [("/other/bin/python3", "3.11.9", "uv")])
            self.assertEqual(found["program"]["path"], "/other/bin/python")
            self.assertEqual(found["coverage"], [{"package": "vllm 1.0", "files": 1, "archs": ["compute_120"],
                                                  "gpus": [{"compute_capability": "8.0", "files": 1, "run": 0, "jit": 0}]}])
        self.assertEqual(self.doctor(VIRTUAL_ENV="/own")["coverage"][0]["gpus"],
                         [{"compute_capability": "8.0", "files": 1, "run": 1, "jit": 1}])

    def test_the_hosts_environment_is_not_the_images(self):
        done = self.kshim("doctor", "--format", "json", "--root", self.root,
                          env=e2e.clean_environment(CUDA_HOME="/of/the/host", LD_LIBRARY_PATH="/lib", VIRTUAL_ENV="/venv",
                                                    CUDA_VISIBLE_DEVICES="-1", NVIDIA_VISIBLE_DEVICES="all"))
        self.assertEqual(self.ids(fixture.json.loads(done.stdout)), [])

    def test_one_block_for_an_issue(self):
        self.driver()
        self.put("/etc/os-release", 'PRETTY_NAME="Debian | <b>12</b>"\n')
        self.environment("/home/ada/venv", "torch", 80)
        done = self.kshim("doctor", "--format", "markdown", "--root", self.root, "/home/ada/venv/bin/python")
        self.assertEqual(done.returncode, 1, done.stderr)
        for part in ("580.82.07", "A100", "3.11.9", "uv", "torch 1.0", "compute_80", "~/venv/bin/python"):
            self.assertIn(part, done.stdout)
        self.assertNotRegex(done.stdout, r"\bada\b")  # as a word: kshim's version is a hash that may hold it
        for part in ("<b>", "Debian | "):
            self.assertNotIn(part, done.stdout)

    def test_what_would_not_end(self):
        """A FIFO where a file should be."""
        site = self.root / "venv/lib/python3.11/site-packages/torch-1.dist-info"
        site.mkdir(parents=True)
        (self.root / "etc").mkdir()
        (self.root / "usr/local/cuda").mkdir(parents=True)
        for path in (site / "METADATA", self.root / "etc/ld.so.cache", self.root / "etc/ld.so.preload", self.root / "usr/local/cuda/version.json",
                     self.root / "program"):
            os.mkfifo(path)
        self.assertEqual(self.ids(self.doctor("/program", status=1, VIRTUAL_ENV="/venv"), "error"), ["program-missing"])

    def test_the_systems_library_before_the_wheels(self):
        site = "/venv/lib/python3.11/site-packages"
        self.wheel(site, "nvidia-cublas-cu12", "12.8.4.1")
        self.library(f"{site}/nvidia/cublas/lib/libcublas.so.12")
        self.library("/usr/local/cuda/lib64/libcublas.so.12.4.5.8", "/usr/local/cuda/lib64/libcublas.so.12")
        found = self.doctor(VIRTUAL_ENV="/venv", LD_LIBRARY_PATH="/usr/local/cuda/lib64")
        self.assertEqual(self.ids(found), ["shadowed-libraries"])

    def test_conda_before_the_system(self):
        self.put("/conda/lib/python3.11/keep")
        self.library("/conda/lib/libcudart.so.12")
        self.library("/usr/local/cuda/lib64/libcudart.so.12.4.127", "/usr/local/cuda/lib64/libcudart.so.12")
        found = self.doctor(CONDA_PREFIX="/conda", LD_LIBRARY_PATH="/usr/local/cuda/lib64")
        self.assertEqual(self.ids(found), ["shadowed-libraries"])
        self.assertEqual(self.ids(self.doctor(CONDA_PREFIX="/conda", LD_LIBRARY_PATH="/conda/lib")), [])

    def test_two_copies(self):
        self.library("/opt/x/libcudnn.so.9.1.0", "/opt/x/libcudnn.so.9")
        self.library(f"{LIB}/libcudnn.so.9.10.2", f"{LIB}/libcudnn.so.9")
        self.cache(f"{LIB}/libcudnn.so.9")
        found = self.doctor(LD_LIBRARY_PATH="/opt/x")
        self.assertEqual(self.ids(found), ["two-copies"])
        self.assertEqual(found["libraries"][0]["path"], "/opt/x/libcudnn.so.9")

    def test_what_the_linker_passes_over(self):
        """A library of another word size, and one of another machine in the cache."""
        self.put("/opt/x/libcudart.so.12", b"\x7fELF\x01\x01\x01" + bytes(100))
        self.library(f"{LIB}/libcudart.so.12")
        self.cache("/opt/y/libcudart.so.12", flags=0x0003)
        self.cache(f"{LIB}/libcudart.so.12")
        found = self.doctor(LD_LIBRARY_PATH="/opt/x")
        self.assertEqual([library["path"] for library in found["libraries"]], [f"{LIB}/libcudart.so.12"])

    def test_preloads(self):
        own = self.library("/opt/tools/libhook.so")
        found = self.doctor(LD_PRELOAD=f"{own} /opt/gone.so")
        self.assertEqual(self.ids(found), ["preload-missing"])
        self.assertEqual([preload["there"] for preload in found["preloads"]], [True, False])

    def test_another_tool_that_hooks_dlsym(self):
        self.put("/opt/libother.so", e2e.SHIM.read_bytes(), 0o755)
        self.put("/etc/ld.so.preload", "/opt/libother.so\n")
        found = self.doctor()
        self.assertIn("preload-dlsym", self.ids(found, "info"))


class CommandLine(fixture.MachineCase):
    def test_text(self):
        self.driver(version="570.133.20")
        done = self.kshim("doctor", "--root", self.root)
        self.assertEqual(done.returncode, 1)
        for part in ("error:", "580.82.07", "570.133.20", "NVIDIA A100-SXM4-40GB", "libcuda.so.1"):
            self.assertIn(part, done.stdout)

    def test_foreign_names_do_not_steer_the_terminal(self):
        self.put("/proc/driver/nvidia/gpus/0000:65:00.0/information", "Model: evil\x1b]0;title\x07\n")
        done = self.kshim("doctor", "--root", self.root)
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("evil", done.stdout)

    def test_this_machine(self):
        done = self.kshim("doctor")
        self.assertIn(done.returncode, (0, 1))
        self.assertIn("GPU", done.stdout)
        fixture.schema_check(fixture.json.loads(self.kshim("doctor", "--format", "json", "sh").stdout))

    def test_misuse(self):
        self.assert_says(self.kshim("doctor", "--format", "html"), 2, "--format")
        self.assert_says(self.kshim("doctor", "--root", "/nowhere/at/all"), 2, "--root")

    def test_links_that_lead_in_circles_or_out(self):
        os.symlink("/b", self.root / "a")
        os.symlink("/a", self.root / "b")
        (self.root / "usr").mkdir()
        os.symlink("../../../../../../../../usr/lib", self.root / "usr/lib")
        self.assertEqual(self.ids(self.doctor(CUDA_HOME="/a", LD_LIBRARY_PATH="/b:/usr/lib")), ["toolkit-gone"])


if __name__ == "__main__":
    fixture.main()
