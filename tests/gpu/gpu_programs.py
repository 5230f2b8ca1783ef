# SPDX-License-Identifier: Apache-2.0
"""Builds what tools/gpu_facts runs: images for many architectures, and clients of the driver and of runtimes, each once for
the device and once for another one, so that it fails there."""
import dataclasses
import pathlib
import subprocess

# Of another major than any of the others, so that neither runs the other's code.
OTHERS = ("120", "90", "80")


@dataclasses.dataclass
class Client:
    name: str
    argv: list
    environment: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Programs:
    toolkit: str = ""
    images: pathlib.Path = None
    names: pathlib.Path = None
    driver_facts: pathlib.Path = None
    questions: pathlib.Path = None
    tracer: pathlib.Path = None  # None where it was not built: clients are run all the same
    clients: list = dataclasses.field(default_factory=list)
    problems: list = dataclasses.field(default_factory=list)  # what could not be built, and why


def build(root, nvcc, work, device, names, quick, pool):
    return Builder(root, nvcc, work, device, quick, pool).build(names)


class Builder:
    def __init__(self, root, nvcc, work, device, quick, pool):
        self.root, self.nvcc, self.work, self.quick, self.pool = root, nvcc, work, quick, pool
        self.toolkit = nvcc.parent.parent
        self.device = f"{device['major']}{device['minor']}"
        self.out = Programs()
        self.jobs = []

    def start(self, output, argv, needed=True):
        """Runs a compiler beside others. A file that is there already is taken for what it would make."""
        if not output.exists() and output not in [job[0] for job in self.jobs]:
            self.jobs.append((output, needed, self.pool.submit(subprocess.run, [str(word) for word in argv], stdout=subprocess.PIPE,
                                                               stderr=subprocess.STDOUT, check=False)))
        return output

    def wait(self):
        for output, needed, job in self.jobs:
            done = job.result()
            if done.returncode == 0 and output.exists():
                continue
            output.unlink(missing_ok=True)
            last = done.stdout.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            self.out.problems.append(f"{output.name}: {last[0][:300]}")
            if needed:
                raise SystemExit(f"gpu_facts: cannot build {output.name}:\n{done.stdout.decode(errors='replace')[-2000:]}")
        self.jobs = []

    def codes(self):
        """What the toolkit builds cubins for, without the sm_."""
        done = subprocess.run([self.nvcc, "--list-gpu-code"], stdout=subprocess.PIPE, check=False)
        return [line[3:] for line in done.stdout.decode().split() if line.startswith("sm_")]

    def include(self):
        for folder in (self.toolkit / "include", self.toolkit / "targets/x86_64-linux/include"):
            if (folder / "cuda.h").exists():
                return folder
        return self.toolkit / "include"

    def libraries(self):
        for name in ("lib64", "lib", "targets/x86_64-linux/lib"):
            if (self.toolkit / name / "libcudart_static.a").exists():
                return self.toolkit / name
        return self.toolkit / "lib64"

    def build(self, names):
        done = subprocess.run([self.nvcc, "--version"], stdout=subprocess.PIPE, check=False)
        self.out.toolkit = next((line.strip() for line in done.stdout.decode().splitlines() if "release" in line), "?")
        self.out.names = self.work / "names.txt"
        self.out.names.write_text("\n".join(names) + "\n")
        codes = self.codes()
        self.start_images(codes)
        self.start_tools()
        clients = self.start_clients(codes)
        self.wait()
        self.out.clients = [client for client in clients if pathlib.Path(client.argv[0]).exists()]
        if not (self.work / "tracer.so").exists():
            self.out.tracer = None
        listed = sorted(path.name for path in self.out.images.iterdir() if path.name != "images.txt")
        (self.out.images / "images.txt").write_text("\n".join(listed) + "\n")
        return self.out

    def start_images(self, codes):
        source = self.root / "tests/gpu/kernels.cu"
        folder = self.out.images = self.work / "images"
        folder.mkdir(exist_ok=True)

        def image(name, *flags, needed=False):
            self.start(folder / name, [self.nvcc, *flags, "-o", folder / name, source], needed)

        def generations(*pairs):
            return [word for virtual, real in pairs for word in ("-gencode", f"arch=compute_{virtual},code={real}")]

        few = [code for code in codes if code in ("75", "90", "100", self.device)]
        for code in few if self.quick else codes:
            image(f"sm_{code}.cubin", "-cubin", f"-arch=sm_{code}")
        suffixed = [f"{code}a" for code in codes if int(code) >= 90] + [f"{code}f" for code in codes if int(code) >= 100]
        for code in ["90a"] if self.quick else suffixed:
            image(f"sm_{code}.cubin", "-cubin", f"-arch=sm_{code}")
            image(f"cubin{code}.fatbin", "-fatbin", *generations((code, f"sm_{code}")))
        # driver_facts takes this one apart, with the PTX of compute_75.
        image("sm_75.ptx", "-ptx", "-arch=compute_75", needed=True)
        image("all.fatbin", "-fatbin", *generations(("75", "sm_75"), ("90", "sm_90"), ("90", "compute_90")), needed=True)
        for code in () if self.quick else ("90", "90a", "100", "120"):
            image(f"sm_{code}.ptx", "-ptx", f"-arch=compute_{code}")
        for code in ("75", "100"):
            image(f"cubin{code}.fatbin", "-fatbin", *generations((code, f"sm_{code}")))
            image(f"ptx{code}.fatbin", "-fatbin", *generations((code, f"compute_{code}")))
        if self.device in codes:
            image("zstd.fatbin", "-fatbin", "--compress-mode=size", *generations((self.device, f"sm_{self.device}")))
            image("first_only.cubin", "-cubin", f"-arch=sm_{self.device}", "-DKSHIM_FIRST_ONLY")
            # Which of several that fit is taken: attribute 6 of the kernel is the architecture of its image.
            same = [code for code in codes if code[:-1] == self.device[:-1] and int(code) <= int(self.device)]
            image("several_that_fit.fatbin", "-fatbin", *generations(*[(code, f"sm_{code}") for code in same]))

    def start_tools(self):
        gpu = self.root / "tests/gpu"
        include = ["-isystem", self.include()]
        self.out.driver_facts = self.start(self.work / "driver_facts",
                                           ["c++", "-std=c++20", "-O1", *include, "-o", self.work / "driver_facts", gpu / "driver_facts.cpp", "-ldl"])
        self.out.questions = self.start(self.work / "questions",
                                        ["c++", "-std=c++20", "-O1", *include, "-o", self.work / "questions", gpu / "questions.cpp", "-ldl"])
        # On x86-64 alone; elsewhere clients are run without it.
        self.out.tracer = self.start(self.work / "tracer.so",
                                     ["cc", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-o", self.work / "tracer.so", gpu / "tracer.c",
                                      gpu / "tracer_x86_64.S", "-ldl", "-lpthread"], needed=False)

    def start_clients(self, codes):
        sources = self.root / "tests/clients/programs"
        other = next(code for code in OTHERS if code in codes and code[:-1] != self.device[:-1])
        fits = self.device if self.device in codes else None
        libraries = self.libraries()
        common = ["-O1", f"-L{libraries}", f"-L{libraries / 'stubs'}", "-Xlinker", f"-rpath={libraries}"]
        kinds = {"static runtime": ("runtime.cu", []), "shared runtime": ("runtime.cu", ["-cudart", "shared"])}
        if not self.quick:
            kinds.update({"per-thread streams": ("runtime.cu", ["--default-stream", "per-thread"]),
                          "relocatable": ("parts_main.cu", [sources / "parts_other.cu", "-rdc=true"])})
        clients = []
        for kind, (source, flags) in kinds.items():
            for which, code in (("fitting", fits), ("foreign", other)):
                if code is None:
                    continue
                name = f"{kind}, {which} (sm_{code})"
                output = self.work / f"{kind.replace(' ', '_')}_{which}"
                # No PTX: it would be compiled for the device.
                self.start(output, [self.nvcc, *common, "-gencode", f"arch=compute_{code},code=sm_{code}", *flags, "-o", output, sources / source],
                           needed=False)
                clients.append(Client(name, [output]))
        clients += self.start_loaders(sources, fits, other, common)
        return clients + self.start_old_clients(sources, other)

    def start_loaders(self, sources, fits, other, common):
        """Clients that load a file: through the driver's own functions and through the runtime's cudaLibrary."""
        driver = self.start(self.work / "driver_client", [self.nvcc, *common, "-cudart", "none", "-o", self.work / "driver_client", sources / "driver.cpp"],
                            needed=False)
        library = self.start(self.work / "library_client", [self.nvcc, *common, "-o", self.work / "library_client", sources / "library.cu"], needed=False)
        clients = []
        for which, code in (("fitting", fits), ("foreign", other)):
            if code is None:
                continue
            image = self.start(self.work / f"client_{which}.fatbin",
                               [self.nvcc, "-fatbin", "-gencode", f"arch=compute_{code},code=sm_{code}", "-o", self.work / f"client_{which}.fatbin",
                                sources / "kernels.cu"], needed=False)
            for mode in ("dlsym", "getproc"):
                clients.append(Client(f"driver by {mode}, {which} (sm_{code})", [driver, mode, image]))
            clients.append(Client(f"cudaLibrary, {which} (sm_{code})", [library, image]))
            if not self.quick:
                compilers = self.start(self.work / "compilers_client",
                                       [self.nvcc, *common, "-o", self.work / "compilers_client", sources / "compilers.cpp", "-lcuda", "-lnvrtc", "-lnvJitLink"],
                                       needed=False)
                clients.append(Client(f"NVRTC, nvJitLink, cuLink, {which} (sm_{code})", [compilers, code]))
        return clients

    def start_old_clients(self, sources, other):
        """Programs of runtimes 11 and 12, where tools/setup has fetched some."""
        clients = []
        image = self.work / "client_foreign.fatbin"
        found = sorted(self.root.glob("build/deps/runtimes/*/nvidia/cuda_runtime/lib/libcudart.so.*"))
        for library in [] if self.quick else found:
            version = library.parts[-5]
            output = self.work / f"old_{version}"
            self.wait()  # the image is compiled into it
            self.start(output, ["c++", "-O1", f'-DFATBIN="{image}"', f"-I{sources}", "-o", output, sources / "old_runtime.cpp", library,
                                f"-Wl,-rpath,{library.parent}"], needed=False)
            clients.append(Client(f"runtime {version}, foreign (sm_{other})", [output]))
        return clients
