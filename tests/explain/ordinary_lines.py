#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines of logs in which nothing of CUDA's failed: training, builds, package managers, model servers, CI, kernels, web servers, batch
schedulers, databases. Programs that work, and programs that fail for other reasons. `python ordinary_lines.py` prints them, a line with
its domain before a tab.

A template has {words}, each filled from a list below or by a function; it is filled until there are VARIANTS different lines."""
import random
import re

VARIANTS = 8
SEED = 20261128


def number(least, most):
    return lambda choose: str(choose.randint(least, most))


def decimal(least, most, digits=2):
    return lambda choose: f"{choose.uniform(least, most):.{digits}f}"


def hexadecimal(digits):
    return lambda choose: "".join(choose.choice("0123456789abcdef") for _ in range(digits))


WORDS = {
    "model": ["gemma3", "llama", "qwen3", "mistral", "phi-4", "deepseek-v3", "gpt-oss", "falcon-h1", "olmo2", "smollm3", "glm4_moe", "mamba2", "command-r", "granite"],
    "klass": ["Gemma3ForConditionalGeneration", "LlamaForCausalLM", "Qwen3MoeForCausalLM", "Phi3ForCausalLM", "MistralForCausalLM", "BertModel", "T5EncoderModel", "WhisperForAudio"],
    "arch": ["amd64", "arm64", "x86_64", "aarch64", "i386", "armhf", "ppc64el", "riscv64", "s390x"],
    "cpu": ["Skylake-X", "znver4", "Cascadelake", "Neoverse-N1", "generic", "Icelake", "Apple M3"],
    "pkg": ["numpy", "scipy", "pandas", "requests", "lxml", "pillow", "cryptography", "tokenizers", "safetensors", "grpcio", "matplotlib", "protobuf", "pydantic-core", "aiohttp", "sentencepiece"],
    "version": ["1.2.3", "2.0.1", "0.19.4", "3.11.0rc1", "4.44.2", "10.2.0", "25.1", "0.9.10"],
    "file": ["src/main.cpp", "lib/io.c", "app/models/user.py", "core/parser.rs", "cmd/server.go", "utils/helpers.ts", "include/api.h", "train.py", "data/loader.py"],
    "path": ["/data/imagenet/train", "/home/ada/project", "/var/lib/app", "/scratch/run42", "/mnt/nfs/shared", "/tmp/build-7f3", "./outputs", "/workspace/ckpt"],
    "host": ["node001", "gpu-17", "web-3.example.org", "db01", "10.0.3.17", "login2", "worker-5", "ip-172-31-9-4"],
    "user": ["ada", "grace", "jenkins", "root", "ubuntu", "svc-train", "linus"],
    "level": ["INFO", "WARNING", "ERROR", "DEBUG"],
    "date": ["2026-11-02 14:03:55", "2026-10-17T08:22:41Z", "2026/09/30 23:59:59", "Nov 28 01:12:07"],
    "gpu": ["NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090", "NVIDIA H100 80GB HBM3", "Tesla T4", "NVIDIA L40S", "NVIDIA RTX A6000"],
    "func": ["load_config", "main", "forward", "process_batch", "handle_request", "parse_args", "save_checkpoint", "validate"],
    "tensor": ["blk.0.attn_q.weight", "output_norm.weight", "token_embd.weight", "blk.31.ffn_down.weight"],
    "quant": ["Q4_K_M", "Q8_0", "IQ3_XXS", "F16", "MXFP4"],
    "exc": ["ValueError", "KeyError", "TypeError", "RuntimeError", "AttributeError", "IndexError", "OSError"],
    "http": ["200", "201", "204", "301", "304", "400", "401", "403", "404", "409", "418", "429", "499", "500", "502", "503", "504"],
    "errno": ["ENOENT", "EACCES", "ECONNREFUSED", "ETIMEDOUT", "EADDRINUSE", "EPIPE", "ENOSPC"],
    "errtext": ["No such file or directory", "Permission denied", "Connection refused", "Connection timed out", "Address already in use", "Broken pipe", "No space left on device"],
    "disk": ["sda", "nvme0n1", "sdb1", "md0", "dm-3"], "nic": ["eth0", "eno1", "ib0", "mlx5_0", "bond0"],
    "partition": ["gpu", "gpu-long", "debug", "a100", "batch", "interactive"], "state": ["PENDING", "RUNNING", "COMPLETED", "OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL"],
    "n": number(0, 9), "nn": number(10, 99), "nnn": number(100, 999), "big": number(1000, 999999), "pid": number(300, 4000000), "port": number(1024, 65000),
    "code": number(1, 999), "code3": ["100", "101", "200", "201", "209", "218", "221", "222", "301", "304", "400", "404", "500", "700", "701", "702", "715", "717", "719", "800", "999"],
    "loss": decimal(0.01, 9.9, 4), "lr": decimal(0.00001, 0.001, 6), "pct": decimal(0, 100, 1), "sec": decimal(0.01, 999, 2), "gb": decimal(0.1, 79, 1), "hex": hexadecimal(8), "sha": hexadecimal(40),
}

LINES = {
    "training": """
        Epoch {nn}/100: train_loss={loss} val_loss={loss} lr={lr}
        step {big} | loss {loss} | grad norm {loss} | {sec} tokens/s
        [{date}] {level} trainer: saving checkpoint to {path}/step_{big}.pt
        {pct}%|#######   | {nnn}/{big} [00:{nn}<01:{nn}, {sec}it/s]
        Using device: cuda:{n} ({gpu})
        {{'loss': {loss}, 'learning_rate': {lr}, 'epoch': {loss}}}
        UserWarning: The dataloader, train_dataloader, does not have many workers which may be a bottleneck.
        Trainer already configured with model summary callbacks
        Number of trainable parameters: {big}
        Some weights of {klass} were not initialized from the model checkpoint and are newly initialized: ['classifier.bias']
        Token indices sequence length is longer than the specified maximum sequence length for this model ({big} > 512)
        wandb: Run data is saved locally in {path}/wandb/run-{hex}
        wandb: ERROR Network error ({exc}), entering retry loop.
        wandb: Synced {n} W&B file(s), {n} media file(s), {nn} artifact file(s)
        mlflow.exceptions.MlflowException: API request to http://{host}:{port} failed with exception HTTPConnectionPool
        INFO:lightning: GPU available: True (cuda), used: True
        GPU {n}: {gpu}, memory {gb} GB allocated, {gb} GB reserved
        max memory allocated: {gb} GiB
        Early stopping: metric val_acc did not improve in the last {n} records
        {exc}: expected input of shape ({nn}, {nnn}) but got ({nn}, {n})
        RuntimeError: mat1 and mat2 shapes cannot be multiplied ({nn}x{nnn} and {nn}x{nnn})
        RuntimeError: The size of tensor a ({nn}) must match the size of tensor b ({nnn}) at non-singleton dimension {n}
        RuntimeError: Error(s) in loading state_dict for {klass}: size mismatch for lm_head.weight
        Loss is NaN at step {big}, skipping batch
        loss scale reduced to {nnn} after overflow at iteration {big}
        DataLoader worker (pid {pid}) is killed by signal: Terminated.
        FileNotFoundError: [Errno 2] No such file or directory: '{path}/labels_{nn}.csv'
        KeyError: 'model.layers.{n}.self_attn.q_proj.weight'
        AssertionError: vocab size {big} does not match config {big}
        ValueError: Unknown architecture: {model}
        ValueError: unsupported architecture '{klass}' for LoRA
        error: unknown arch {model}, choose from resnet18, resnet50, vit_b_16
        The model type `{model}` is not supported by this version of transformers: update it
        Cannot find an encoder architecture for {model}; falling back to the decoder alone
        Mixed precision: bf16, gradient accumulation steps: {n}, world size: {nn}
        [rank{n}]: initializing process group with backend nccl, master {host}:{port}
        NCCL INFO NET/Plugin: no plugin found, using internal network
        {host}:{pid}:{pid} [{n}] NCCL INFO comm 0x{hex} rank {n} nranks {nn} cudaDev {n} busId {hex} - Init COMPLETE
        [{date}] [{level}] [engine.py:{nnn}] overlapping communication for {n} buckets
        DeepSpeed info: version={version}, git-hash={hex}, git-branch=HEAD
        Restored all states from the checkpoint at {path}/checkpoint-{big}
        Evaluating: {nnn} batches, accuracy {pct}, perplexity {loss}
        Ignoring unknown keyword argument 'arch' of {klass}
        torch.compile: recompiled {func} {n} times, reason: size mismatch at index {n}
        Setting `pad_token_id` to `eos_token_id`:{big} for open-end generation.
        Dataset {path} is empty; nothing to train on
        Mean IoU {pct}, per class: {pct} {pct} {pct}
        seed set to {nnn}; cudnn.benchmark = False
        """,
    "servers of models": """
        error loading model: unknown model architecture: '{model}'
        llama_model_load: error loading model: error loading model architecture: unknown model architecture: '{model}'
        llama_model_loader: loaded meta data with {nn} key-value pairs and {nnn} tensors from {path}/{model}.gguf (version GGUF V3 (latest))
        llama_model_loader: - type {quant}: {nnn} tensors
        print_info: arch             = {model}
        print_info: general.name     = {model} Instruct
        llama_model_load: error loading model: missing tensor '{tensor}'
        llama_model_load: error loading model: tensor '{tensor}' data is not within the file bounds, model is corrupted or incomplete
        load_tensors: offloaded {nn}/{nn} layers to GPU
        load_tensors:        CUDA{n} model buffer size = {sec} MiB
        ggml_cuda_init: found 1 CUDA devices:
        Device {n}: {gpu}, compute capability 8.{n}, VMM: yes
        ggml_cuda_init: GGML_CUDA_FORCE_MMQ:    no
        llama_context: n_ctx_per_seq ({big}) < n_ctx_train ({big}) -- the full capacity of the model will not be utilized
        main: server is listening on http://127.0.0.1:{port} - starting the main loop
        srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 {http}
        slot launch_slot_: id  {n} | task {nnn} | processing task
        common_init_from_params: failed to load model '{path}/{model}.gguf'
        ValueError: Model architectures ['{klass}'] are not supported for now. Supported architectures: dict_keys(['LlamaForCausalLM'])
        ValueError: Model architectures ['{klass}'] failed to be inspected. Please check the logs for more details.
        INFO {date} [config.py:{nnn}] This model supports multiple tasks: {{'generate', 'embed'}}. Defaulting to 'generate'.
        INFO {date} [worker.py:{nnn}] model weights take {gb}GiB; the rest of the memory reserved for KV Cache is {gb}GiB
        INFO {date} [gpu_model_runner.py:{nnn}] Graph capturing finished in {nn} secs, took {gb} GiB
        INFO {date} [cuda.py:{nnn}] Using Flash Attention backend on V1 engine.
        INFO {date} [weight_utils.py:{nnn}] Using model weights format ['*.safetensors']
        INFO:     127.0.0.1:{port} - "POST /v1/completions HTTP/1.1" {http} OK
        ERROR {date} [serving_chat.py:{nnn}] Error in preprocessing prompt inputs: {exc}
        Avg prompt throughput: {sec} tokens/s, Running: {n} reqs, Waiting: {n} reqs, GPU KV cache usage: {pct}%
        time={date} level=INFO source=server.go:{nnn} msg="llama runner started in {sec} seconds"
        time={date} level=INFO source=types.go:{nnn} msg="inference compute" id=GPU-{hex} library=cuda variant=v12 compute=8.{n} driver=12.{n} name="{gpu}" total="{gb} GiB"
        time={date} level=ERROR source=sched.go:{nnn} msg="error loading llama server" error="llama runner process has terminated: error loading model: unknown model architecture: '{model}'"
        Error: pull model manifest: file does not exist: {model}:latest
        Shard {n}: waiting for the webserver to be ready on port {port}
        {date} {level} text_generation_router: Serving revision {sha} of model {model}
        RuntimeError: unsupported quantization method '{quant}' for architecture {model}
        Architecture {klass} is not supported by the exporter yet
        triton server: failed to load '{model}' version {n}: Invalid argument: unexpected inference output 'logits'
        I{nnn} 01:02:03.{nnn} {nnn} http_server.cc:{nnn}] Started HTTPService at 0.0.0.0:{port}
        WARN  batch of {nn} requests exceeds the deadline of {nnn} ms
        Failed to fetch model {model}: HTTP error {http}
        Invalid architecture in {path}/config.json: expected {klass}
        Warming up model {model}: {n} of {n} requests done
        KV cache dtype: auto, block size {nn}, swap space {n} GiB
        """,
    "package managers": """
        dpkg: error processing archive {pkg}_{version}_{arch}.deb (--install): package architecture ({arch}) does not match system ({arch})
        N: Skipping acquire of configured file 'main/binary-i386/Packages' as repository 'http://{host} stable InRelease' doesn't support architecture 'i386'
        E: Unable to locate package {pkg}
        E: Package '{pkg}' has no installation candidate
        Err:{n} http://{host}/debian bookworm/main {arch} Packages 404  Not Found [IP: 10.1.2.3 80]
        Get:{n} http://{host}/ubuntu noble/main {arch} {pkg} {arch} {version} [{nnn} kB]
        Setting up {pkg} ({version}) ...
        W: Failed to fetch http://{host}/InRelease  Temporary failure resolving '{host}'
        The following packages have unmet dependencies: {pkg} : Depends: libc6 (>= 2.{nn}) but it is not going to be installed
        ERROR: Could not find a version that satisfies the requirement {pkg}=={version} (from versions: none)
        ERROR: No matching distribution found for {pkg}=={version}
        ERROR: {pkg}-{version}-cp311-cp311-linux_{arch}.whl is not a supported wheel on this platform.
        Collecting {pkg}=={version}
        Downloading {pkg}-{version}-cp312-cp312-manylinux_2_28_{arch}.whl ({nn}.{n} MB)
        Successfully installed {pkg}-{version} setuptools-{nn}.0
        error: subprocess-exited-with-error: building wheel for {pkg} (pyproject.toml) did not run successfully
        note: This error originates from a subprocess, and is likely not a problem with pip.
        WARNING: Retrying (Retry(total={n}, connect=None)) after connection broken by 'ReadTimeoutError'
        PackagesNotFoundError: The following packages are not available from current channels: - {pkg}[version='{version}']
        UnsatisfiableError: The following specifications were found to be incompatible with each other: {pkg}={version}
        Solving environment: failed with initial frozen solve. Retrying with flexible solve.
        npm ERR! code {errno}
        npm ERR! notsup Unsupported platform for {pkg}@{version}: wanted {{"os":"darwin","arch":"arm64"}} (current: {{"os":"linux","arch":"x64"}})
        npm error code EBADPLATFORM: unsupported architecture, wanted arm64, current x64
        gyp ERR! build error: unsupported architecture {arch} for {pkg}
        gyp ERR! stack Error: unknown target architecture: {arch}
        error: failed to run custom build command for `{pkg}-sys v{version}`
        error[E{big}]: mismatched types in {file}:{nn}:{n}
        Compiling {pkg} v{version} ({path})
        error: package `{pkg} v{version}` cannot be built because it requires rustc 1.{nn} or newer
        error: target architecture {arch} is not supported by crate {pkg}
        go: {host}/{pkg}@v{version}: invalid version: unknown revision v{version}
        Error: No available formula with the name "{pkg}". Did you mean {pkg}-core?
        Error: {pkg}: unsupported architecture: bottle is for {arch} and this is {arch}
        Problem: nothing provides {pkg} = {version} needed by {pkg}-devel-{version}.{arch}
        Error: Failed to download metadata for repo 'epel': Cannot prepare internal mirrorlist: Status code: {http}
        rpm: package {pkg}-{version}.{arch} is intended for a different architecture
        uv: Resolved {nnn} packages in {nnn}ms
        error: Distribution `{pkg}=={version}` can't be installed because it doesn't have a source distribution or wheel for the current platform
        spack: error: {pkg}@{version} target={arch} conflicts with compiler gcc@{nn}
        docker: no matching manifest for linux/{arch} in the manifest list entries.
        WARNING: The requested image's platform (linux/{arch}) does not match the detected host platform (linux/{arch}) and no specific platform was requested
        exec /usr/bin/{pkg}: exec format error
        failed to solve: {pkg}:{version}: not found
        snap "{pkg}" is not available on stable for this architecture ({arch}) but exists on other architectures
        error: flatpak {pkg}/{arch}/stable is invalid: unknown architecture
        """,
    "builds": """
        [{pct}%] Building CXX object CMakeFiles/{pkg}.dir/{file}.o
        {file}:{nnn}:{nn}: error: expected ';' before '}}' token
        {file}:{nnn}:{nn}: warning: unused variable '{func}' [-Wunused-variable]
        {file}:{nnn}: undefined reference to `{func}'
        collect2: error: ld returned 1 exit status
        /usr/bin/ld: skipping incompatible /usr/lib/lib{pkg}.so when searching for -l{pkg}
        /usr/bin/ld: i386 architecture of input file `{file}.o' is incompatible with i386:x86-64 output
        ld: warning: ignoring file lib{pkg}.a, building for macOS-arm64 but attempting to link with file built for unknown-unsupported file format
        ld: symbol(s) not found for architecture {arch}
        clang: error: unsupported option '-march={cpu}' for target '{arch}-linux-gnu'
        cc1: error: bad value '{cpu}' for '-march=' switch
        error: unknown target CPU '{cpu}'
        make: *** [Makefile:{nnn}: {func}] Error {n}
        make[{n}]: Leaving directory '{path}'
        ninja: build stopped: subcommand failed.
        CMake Error at CMakeLists.txt:{nn} (find_package): Could not find a package configuration file provided by "{pkg}"
        CMake Warning (dev): Policy CMP0{nnn} is not set
        -- The CUDA compiler identification is NVIDIA 12.{n}.{nn}
        -- Detecting CUDA compile features - done
        -- Found CUDAToolkit: /usr/local/cuda/include (found version "12.{n}.{nn}")
        -- Configuring done ({sec}s)
        -- Looking for pthread_create in pthreads - not found
        checking build system type... {arch}-pc-linux-gnu
        configure: error: unsupported host architecture {arch}
        configure: error: C compiler cannot create executables
        config.sub: machine `{arch}-foo' not recognized
        error: linker `cc` not found
        error TS{big}: Cannot find module './{func}' or its corresponding type declarations.
        webpack {version} compiled with {n} errors in {big} ms
        BUILD FAILURE: Failed to execute goal on project {pkg}: Could not resolve dependencies
        e: {file}: ({nn}, {n}): Unresolved reference: {func}
        Gradle: Execution failed for task ':{pkg}:compileJava'. Unsupported class file major version {nn}
        bazel: ERROR: {path}/BUILD:{nn}:{n}: no such target '//{pkg}:{func}'
        bazel: ERROR: --cpu={arch} is not supported: no matching toolchains found for types
        error: {file} was compiled for architecture {arch}, but the target is {arch}
        meson.build:{nn}:{n}: ERROR: Dependency "{pkg}" not found, tried pkgconfig and cmake
        meson.build:{n}:0: ERROR: Unknown CPU architecture {arch}
        go build: {file}:{nn}: undefined: {func}
        go: unsupported GOOS/GOARCH pair linux/{arch}
        nasm: fatal: unrecognized output format `elf{nn}'
        Assembler messages: {file}:{nnn}: Error: unknown mnemonic `{func}' -- architecture is armv7
        strip: lib{pkg}.so: file format not recognized
        qemu-{arch}: Could not open '/lib/ld-linux.so': No such file or directory
        ptxas info    : Used {nn} registers, {nnn} bytes smem, {nnn} bytes cmem[0]
        ptxas info    : Compiling entry function '_Z{nn}{func}Pf' for 'sm_{nn}'
        nvcc warning : Support for offline compilation for architectures prior to '<compute/sm/lto>_75' will be removed in a future release
        llvm-strip: error: '{file}': The file was not recognized as a valid object file
        """,
    "CI": """
        ##[group]Run actions/checkout@v{n}
        Error: Process completed with exit code {nnn}.
        FAILED tests/test_{func}.py::test_{func}[{nn}-half] - {exc}: {nn} != {nnn}
        ================ {n} failed, {nnn} passed, {nn} skipped in {sec}s ================
        E       assert {nnn} == {nnn}
        tests/test_{func}.py ....F...s.                                  [ {nn}%]
        SKIPPED [{n}] tests/test_gpu.py:{nn}: no GPU on this runner
        XPASS tests/test_{func}.py::test_{func} - unsupported arch on CI
        {nnn}/{nnn} Test #{nnn}: {func} ...................   Passed    {sec} sec
        {nnn}/{nnn} Test #{nnn}: {func} ...................***Failed    {sec} sec
        The following tests FAILED: {nnn} - {func} (SEGFAULT)
        Job {big} exceeded the maximum execution time of {nn} minutes
        fatal: unable to access 'https://{host}/{pkg}.git/': The requested URL returned error: {http}
        fatal: not a git repository (or any of the parent directories): .git
        error: pathspec '{func}' did not match any file(s) known to git
        CONFLICT (content): Merge conflict in {file}
        Uploading artifact '{pkg}-{version}' failed: {http}
        No files were found with the provided path: {path}. No artifacts will be uploaded.
        Runner {host} (version {version}) is ready, architecture: X64
        Error: unsupported runner architecture: {arch}
        Cache not found for input keys: linux-{arch}-{sha}
        Coverage {pct}% is below the required minimum of {nn}%
        ERROR: Job failed (system failure): pods "runner-{hex}" not found
        mypy: {file}:{nn}: error: Incompatible return value type (got "int", expected "str")  [return-value]
        ruff: {file}:{nn}:{n}: F{nnn} '{pkg}' imported but unused
        thread 'main' panicked at {file}:{nn}:{n}: called `Result::unwrap()` on an `Err` value: {exc}
        thread 'tests::{func}' panicked: unknown architecture {arch}
        --- FAIL: Test{func} ({sec}s)
        panic: runtime error: index out of range [{nn}] with length {n}
        sonar: QUALITY GATE STATUS: FAILED, code smells {nn}
        """,
    "kernels": """
        [{big}.{nnn}] blk_update_request: I/O error, dev {disk}, sector {big} op 0x0:(READ)
        [{big}.{nnn}] EXT4-fs error (device {disk}): ext4_find_entry:{big}: inode #{big}: comm {func}: reading directory lblock 0
        [{big}.{nnn}] {nic}: Link is Up - {n}0000 Mbps full duplex
        [{big}.{nnn}] usb 1-{n}: new high-speed USB device number {nn} using xhci_hcd
        [{big}.{nnn}] Out of memory: Killed process {pid} (python3) total-vm:{big}kB, anon-rss:{big}kB
        [{big}.{nnn}] python3[{pid}]: segfault at {hex} ip {hex} sp {hex} error {n} in lib{pkg}.so[{hex}+1000]
        [{big}.{nnn}] nvidia-nvlink: Nvlink Core is being initialized, major device number {nnn}
        [{big}.{nnn}] nvidia 0000:{nn}:00.0: enabling device (0000 -> 0003)
        [{big}.{nnn}] mce: [Hardware Error]: CPU {nn}: Machine Check: 0 Bank {n}: {hex}
        [{big}.{nnn}] ata{n}.00: failed command: READ FPDMA QUEUED, error code {code3}
        [{big}.{nnn}] CPU: {nn} PID: {pid} Comm: kworker Not tainted 6.{nn}.0-{nn}-{arch}
        [{big}.{nnn}] smpboot: CPU0: unknown microarchitecture, family {nn} model {nn}
        [{big}.{nnn}] audit: type={big} audit({big}.{nnn}:{nn}): apparmor="DENIED" operation="open"
        [{big}.{nnn}] nfs: server {host} not responding, timed out
        [{big}.{nnn}] mlx5_core 0000:{nn}:00.0: Port module event[error]: module {n}, Cable error, error code {nn}
        [{big}.{nnn}] thermal thermal_zone{n}: critical temperature reached ({nn} C), shutting down
        systemd[1]: {pkg}.service: Main process exited, code=exited, status={nnn}/FAILURE
        systemd[1]: Started {pkg}.service - {func}.
        systemd-coredump[{pid}]: Process {pid} ({func}) of user 1000 dumped core.
        sshd[{pid}]: Failed password for invalid user {user} from {host} port {port} ssh2
        CRON[{pid}]: ({user}) CMD ({path}/{func}.sh)
        kernel: perf: interrupt took too long ({big} > {big}), lowering kernel.perf_event_max_sample_rate
        kernel: module {pkg}: unsupported architecture, not loading
        dracut: unknown arch {arch}, skipping early microcode
        """,
    "web and databases": """
        {host} - {user} [28/Nov/2026:01:02:03 +0000] "GET /api/{func}?id={big} HTTP/1.1" {http} {big}
        {date} [error] {pid}#{n}: *{big} upstream timed out (110: Connection timed out) while reading response header from upstream
        {date} [error] {pid}#{n}: *{big} connect() failed (111: Connection refused) while connecting to upstream, client: {host}
        error code {code3} from server: queue full on GPU partition
        error code {code3} from server: queue full
        error {code3} on GPU instance pool: quota exceeded for project {pkg}
        GPU quota exceeded: request failed with error {code3}
        job {big} on gpu node {host} ended with error code {code3}
        gpu-exporter: scrape error {code3} for {host}
        {level} backend returned status code {code3} for /v1/gpus
        GET /api/gpus/{n} failed: error={code3}
        GPU pricing service: err: {code3} rate limited
        requests.exceptions.HTTPError: {http} Client Error: for url: https://{host}/api/{func}
        psycopg2.OperationalError: could not connect to server: {errtext}
        ERROR:  duplicate key value violates unique constraint "{func}_pkey"
        FATAL:  password authentication failed for user "{user}"
        LOG:  checkpoint complete: wrote {big} buffers ({pct}%)
        redis.exceptions.ConnectionError: Error {nnn} connecting to {host}:{port}. {errtext}.
        {date} WARN  [kafka.clients.NetworkClient] Connection to node {n} could not be established. Broker may not be available.
        ORA-{big}: unable to extend temp segment by {nnn} in tablespace TEMP
        MySQL error {big} (HY000): Lost connection to server at 'reading initial communication packet', system error: {nnn}
        com.mongodb.MongoCommandException: Command failed with error {nnn} (Unauthorized)
        grpc: addrConn.createTransport failed to connect to {{{host}:{port}}}: {errtext}
        Exception in thread "main" java.lang.IllegalStateException: {func} {nnn}
        java.lang.UnsatisfiedLinkError: no {pkg} in java.library.path: unsupported architecture {arch}
        SSL: CERTIFICATE_VERIFY_FAILED certificate verify failed: unable to get local issuer certificate
        curl: (22) The requested URL returned error: {http}
        curl: ({nn}) Failed to connect to {host} port {port}: {errtext}
        wget: server returned error: HTTP/1.1 {http}
        s3: An error occurred ({http}) when calling the HeadObject operation: Not Found
        {errno}: {errtext}, open '{path}/{func}.json'
        Error: listen {errno}: {errtext} 0.0.0.0:{port}
        haproxy[{pid}]: backend {pkg} has no server available!
        smtp: error code {code3}: mailbox unavailable
        ldap_bind: Invalid credentials ({nn})
        kubelet: Error syncing pod {hex}, skipping: failed to "StartContainer" for "{func}" with CrashLoopBackOff
        Warning  FailedScheduling  default-scheduler  0/{nn} nodes are available: node(s) had untolerated taint nvidia.com/gpu
        terraform: Error: creating EC2 Instance: InvalidParameterValue: unsupported architecture {arch}
        ansible: fatal: [{host}]: UNREACHABLE! => {{"msg": "Failed to connect to the host via ssh"}}
        """,
    "around CUDA": """
        Get:{n} https://{host}/compute/cuda/repos/ubuntu2404/{arch} cuda-toolkit-12-{n} 12.{n}.{nn}-1 [{nnn} MB]
        Step {n}/{nn} : FROM nvidia/cuda:12.{n}.0-devel-ubuntu22.04
        GET https://{host}/v2/nvidia/cuda/manifests/12.{n}.0-base status: {http}
        pulling nvidia/cuda:12.{n}.1-runtime: unexpected status code {http}
        Downloading nvidia_cublas_cu12-12.{n}.{n}.1-py3-none-manylinux2014_{arch}.whl: HTTP status {http}
        Collecting nvidia-cuda-runtime-cu12==12.{n}.{nn}
        ERROR: Could not find a version that satisfies the requirement nvidia-cudnn-cu12=={version} (from versions: none)
        error: downloading cuda_12.{n}.run failed, server returned code {http}
        curl: (22) The requested URL https://{host}/cuda/{pkg}.tar.gz returned error: {http}
        conda: CondaHTTPError: HTTP {http} CONNECTION FAILED for url <https://{host}/nvidia/linux-64/cuda-cudart-12.{n}.json>
        Uploading cuda-wheels/{pkg}-{version}+cu12{n}-cp311-linux_{arch}.whl: response code {http}
        test_cuda_{func}: ok ({sec} s)
        tests/cuda/test_{func}.py::test_{func}[cuda] PASSED [ {nn}%]
        FAILED tests/cuda/test_{func}.py::test_{func} - AssertionError: {nnn} != {nnn}
        cuda_{func}.cu({nn}): warning #177-D: variable "{func}" was declared but never referenced
        CUDA available: True, device count: {n}, current device: {n}, capability (8, {n})
        torch {version} CUDA 12.{n} cuDNN 9{nnn}00
        Found CUDA 12.{n}, cuDNN 9.{n}; building with TORCH_CUDA_ARCH_LIST=8.{n}
        -- CUDA architectures: 80;86;90
        Autotuning kernel {func} for sm_{nn}: best config {n} warps, {sec} us
        ptxas info    : 0 bytes gmem, {nnn} bytes cmem[{n}]
        Compute capability: 8.{n}
        Driver Version: 5{nn}.{nn}.0{n}     CUDA Version: 12.{n}
        | {n}  {gpu}          On  | 00000000:{nn}:00.0 Off |                    0 |
        +-----------------------------------------------------------------------------------------+
        nvidia-persistenced[{pid}]: Local RPC services initialized
        nvidia-container-cli: using root /
        time="{date}" level=info msg="Using mode 'auto'" nvidia-container-runtime
        XLA service 0x{hex} initialized for platform CUDA (this does not guarantee that XLA will be used). Devices:
        StreamExecutor device (0): {gpu}, Compute Capability 8.{n}
        Created device /job:localhost/replica:0/task:0/device:GPU:0 with {nnn} MB memory
        Loaded cuDNN version 9{nnn}00
        worker {n} on cuda:{n} finished batch {nnn} with status 0
        worker {n} on cuda:{n}: request returned status {http}
        model moved to cuda:{n}; uploading metrics failed with code {http}
        rank {n} cuda:{n} exit code {n}, signal none
        gpu{n} utilization {pct}%, power {nnn} W, temperature {nn} C, ECC errors 0
        dcgm-exporter: level=info msg="Starting webserver" port={port}
        nsys: Generated report {path}/report{n}.nsys-rep
        Captured CUDA graph for batch size {nn} in {sec} s
        CUDA graphs disabled for batch size {nnn}
        Installing CUDA toolkit into {path}/cuda-12.{n}
        Removed symlink /usr/local/cuda -> /usr/local/cuda-12.{n}
        docker: Error response from daemon: manifest for nvidia/cuda:99.{n} not found: manifest unknown
        nvcc --version: Cuda compilation tools, release 12.{n}, V12.{n}.{nn}
        unsupported operand type(s) for +: 'int' and 'str' in cuda_{func}.py
        ModuleNotFoundError: No module named 'cuda_{func}'
        UnicodeDecodeError: 'utf-8' codec can't decode byte 0x{n}f in position {nnn}: {path}/cuda_notes.txt
        """,
    "batch schedulers": """
        sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified
        sbatch: Submitted batch job {big}
        srun: error: {host}: task {n}: Exited with exit code {nnn}
        srun: Job {big} step creation temporarily disabled, retrying (Requested nodes are busy)
        slurmstepd: error: *** JOB {big} ON {host} ended at {date} due to time limit ***
        slurmstepd: error: Detected {n} oom_kill events in StepId={big}.batch. Some of the step tasks have been OOM Killed.
        {big} {partition} train {user} {state} 1-02:03:04 {n} {host}
        JobState={state} Reason=Priority Dependency=(null) TRES=cpu={nn},gres/gpu={n}
        slurmctld: error: gres/gpu: count not reported for node {host}
        error: partition {partition}: unknown gres type
        sinfo: {partition} up 2-00:00:00 {nn} idle {host}
        qsub: Job rejected by all possible destinations: queue {partition} has no gpu left
        qstat: Unknown Job Id {big}.{host}
        bsub: Job <{big}> is submitted to queue <{partition}>.
        Exited with exit code {nnn}. Resource usage summary: CPU time: {sec} sec.
        PBS: job killed: walltime {big} exceeded limit {big}
        mpirun noticed that process rank {n} with PID {pid} on node {host} exited on signal {n}
        MPI_ABORT was invoked on rank {n} in communicator MPI_COMM_WORLD with errorcode {nnn}.
        [{host}:{pid}] PMIX ERROR: UNREACHABLE in file {file} at line {nnn}
        ORTE was unable to reliably start one or more daemons.
        UCX  WARN  transport '{nic}' is not available, please use one or more of: self, shm, tcp
        ray: (raylet) node {hex} has died: {errtext}
        ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.
        (autoscaler) Error: No available node types can fulfill resource request {{'GPU': {n}}}
        condor: Job {big}.{n} was held: Error from slot{n}@{host}: {errtext}
        module: Unable to locate a modulefile for '{pkg}/{version}'
        Lmod has detected the following error: The following module(s) are unknown: "{pkg}/{version}"
        error: module {pkg}/{version} is built for {cpu} and this node is {cpu}
        flux-job: task(s) exited with exit code {nn}
        dask: Worker tcp://{host}:{port} exceeded {nn}% memory budget. Restarting
        snakemake: Error in rule {func}: jobid: {nn}, output: {path}/{func}.txt
        nextflow: Process `{func}` terminated with an error exit status ({nnn})
        """,
    "programs of science and media": """
        gmx mdrun: step {big}, remaining wall clock time: {nn} s
        Fatal error: number of coordinates in coordinate file ({big}) does not match topology ({big})
        Starting mdrun 'Protein in water' {big} steps, {sec} ps.
        LAMMPS: ERROR: Lost atoms: original {big} current {big} (src/thermo.cpp:{nnn})
        ERROR: Unknown pair style {func} (src/force.cpp:{nnn})
        WARNING: Kokkos with OpenMP: OMP_PROC_BIND environment variable not set
        frame= {nnn} fps= {nn} q={nn}.0 size= {big}kB time=00:00:{nn}.{nn} bitrate={sec}kbits/s speed={loss}x
        Stream mapping: Stream #0:{n} -> #0:{n} (h264 (native) -> h264 (libx264))
        [h264 @ 0x{hex}] error while decoding MB {nn} {nn}, bytestream {nnn}
        Unknown encoder '{func}'
        {path}/clip.mp4: Invalid data found when processing input
        OpenCV: terminate handler is called! {exc} in {func}, matrix {nn}x{nn}
        Fra:{nnn} Mem:{nnn}.{nn}M | Time:00:{nn}.{nn} | Rendering {nn} / {nnn} samples
        Blender: Error: Cannot read file "{path}/scene.blend": {errtext}
        qemu-system-{arch}: -cpu {cpu}: unsupported machine type
        VASP: Error EDDDAV: Call to ZHEGV failed. Returncode = {nn} {n} {nnn}
        OpenFOAM: FOAM FATAL IO ERROR: keyword {func} is undefined in dictionary "{path}"
        Segmentation fault (core dumped)
        Illegal instruction (core dumped): {pkg} was built for {cpu}
        Aborted: {func}: Assertion `n < {nnn}' failed.
        Killed
        mpi4py: ImportError: lib{pkg}.so.{nn}: cannot open shared object file: No such file or directory
        ImportError: /usr/lib/{arch}-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.{nn}' not found (required by {path}/{pkg}.so)
        ImportError: cannot import name '{func}' from '{pkg}' ({path}/{pkg}/__init__.py)
        ModuleNotFoundError: No module named '{pkg}.{func}'
        OSError: {path}/lib{pkg}.so: wrong ELF class: ELFCLASS32
        mach-o file, but is an incompatible architecture (have '{arch}', need '{arch}')
        ImportError: dlopen({path}/_{pkg}.so, 0x0002): tried: '{path}/_{pkg}.so' (mach-o file, but is an incompatible architecture (have 'x86_64', need 'arm64'))
        Julia: ERROR: LoadError: UndefVarError: `{func}` not defined
        R: Error in {func}(x) : argument "y" is missing, with no default
        MATLAB: Error using {func} (line {nn}). Matrix dimensions must agree.
        gdb: Architecture of file not recognized: {path}/{func}
        Traceback (most recent call last):
        File "{path}/{func}.py", line {nnn}, in {func}
        result = {func}(**kwargs)
        raise {exc}(f"unsupported arch {{name}}")
        {exc}: unsupported architecture: {arch}
        {exc}: invalid architecture name {model}
        """,
}


def filled(template, choose):
    def word(match):
        values = WORDS.get(match[1])
        return match[0] if values is None else values(choose) if callable(values) else choose.choice(values)
    return re.sub(r"\{(\w+)\}", word, template).replace("{{", "{").replace("}}", "}")


def lines():
    """(domain, line), the same in each call."""
    choose = random.Random(SEED)
    for domain, text in LINES.items():
        for template in filter(None, map(str.strip, text.splitlines())):
            made = {}
            for _ in range(VARIANTS * 3):
                made.setdefault(filled(template, choose))
            for line in list(made)[:VARIANTS]:
                yield domain, line


if __name__ == "__main__":
    for domain_of_line, each in lines():
        print(f"{domain_of_line}\t{each}")
