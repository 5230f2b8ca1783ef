#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that programs look up: kernels, module files, folders of experiments. Made of patterns, so that the corpus needs no file.

    redact_corpus.py        prints it, a name a line
"""
import itertools

STEMS = ["softmax", "layernorm", "rmsnorm", "rope", "key_rotary", "query_key_norm", "cls_token", "token_mix", "sort_key", "low_pass",
         "band_pass", "sig", "sigmoid_key", "auth_mask", "pat_match", "kv_cache_key", "pass_through", "key_padding_mask", "w_key_proj"]
# The beginnings of tokens of services, as words of a kernel's or a file's name.
STARTS = ["fm1_", "fm2_", "fo1_", "glc_", "glsa_", "gsk_", "npm_", "hf_", "r8_", "fw_", "ntn_", "pnu_", "squ_", "sbp_", "nfp_", "rdme_",
          "figd_", "lin_api_", "api_org_", "sk_test_", "whsec_"]
DASHED = ["tskey-", "pypi-", "nvapi-", "sk-", "key-", "xai-", "pul-", "glpat-", "pplx-", "PMAK-", "pat-na1-"]
KINDS = ["fwd", "bwd", "forward_kernel_fp16_v2", "fused_kernel_bf16", "kernel_0d1d2de3de", "conv2d_3x3_nhwc", "attention_128x64x32_stage3",
         "quantizationconfig", "splitk_reduce_f32", "gemm_bf16_128x128_tn_align8"]

SWEPT = ["lr=0.1", "seed=3", "model.key_dim=64", "token_dim=64", "pass=2", "n_token=1000000", "query_key_norm=true", "cls_token=mean",
         "sort_key=name", "optimizer.sig=tanh", "auth=none", "data.key=conv1_2", "head.low_pass=butter4", "+trainer.token=bf16-mixed",
         "model.sig_dim=[64,128]", "key=q_proj", "pw=3x3", "pat=2to4", "sas=on"]
FOLDERS = [
    "multirun/2026-11-01/12-30-00/{}", "outputs/{}", "/scratch/hydra/{}/0",  # Hydra
    "/home/u/ray_results/train_2026-11-01_12-00-00/train_fn_5f3c2_00001_1_{}_2026-11-01_12-00-05", "/tmp/ray/session_2026-11-01_12-30-00_123456_789/{}",
    "wandb/run-20261101_123000-3f9x2k1b/files/{}", "wandb/offline-run-20261101_123000-a1b2c3d4/{}",
    "mlruns/0/5a4d3c2b1a0f9e8d7c6b5a4d3c2b1a0f/artifacts/{}", "mlartifacts/417283645019283746/{}",
    "lightning_logs/version_3/{}", "lightning_logs/version_3/checkpoints/epoch=9-step=1000-{}",
    "/scratch/slurm/array_4711_17/{}", "/lustre/job.4711_[1-32]/{}",
]
FILES = ["k.so", "train.py", "libops.so.2", "fused_adam.cpython-312-x86_64-linux-gnu.so", "kernel.cubin"]
CACHES = [
    "/home/u/.triton/cache/2HZ6FQ7ZLXN5TJ3KPW4RY6DVAEGMCB2IOSUH7QK5XT3JNW4PLZ6A/{}.cubin",
    "/tmp/torchinductor_u/ey/ceyjkw2l5sjx7ktlv3w3lpq2n5z6a7b2c3d4e5f6g7h2i3j4k5l6/{}.py",
    "/home/u/.cache/vllm/torch_compile_cache/3f9a2b1c0d/rank_0_0/{}.so", "/home/u/.cache/torch_extensions/py312_cu128/{}/{}.so",
    "/nix/store/0c5b7w8xq3z6k2v9n1m4l8j5h3g7f2d1-{}/lib/lib{}.so", "/spack/opt/linux-x86_64/gcc-13.2.0/{}-1.0-abcdefghij234567/lib/lib{}.so",
    "/var/lib/containers/storage/overlay/5a4d3c2b1a0f9e8d7c6b5a4d3c2b1a0f5a4d3c2b1a0f9e8d7c6b5a4d3c2b1a0f/merged/{}.so",
    "/home/u/.cache/entry-5a4d3c2b1a0f9e8d7c6b5a4d3c2b1a0f/{}.so", "/data/5a4d3c2b1a0f9e8d7c6b5a4d3c2b1a0f-us-east-1/{}.so",
    "/home/u/.cache/huggingface/hub/models--org--Llama-3.1-8B/snapshots/5a4d3c2b1a0f9e8d7c6b5a4d3c2b1a0f5a4d3c2b/{}.py",
]


def kernels():
    """Of Triton, NVRTC and extern "C": not mangled."""
    for start, kind in itertools.product(STARTS, KINDS):
        yield start + kind
        yield f"softmax_{start}{kind}"
    for stem, kind in itertools.product(STEMS, KINDS):
        yield f"{stem}_{kind}"
        name = f"{stem}_{kind}"
        yield f"_Z{len(name)}{name}ILi128ELb1EEvPKfPfi"
    for letter, (a, b) in itertools.product("abk", itertools.product((16, 32, 64, 128, 256), repeat=2)):
        yield f"triton_{letter}er_fused__softmax_key_{a}_token_{b}"


def paths():
    for folder, (a, b) in itertools.product(FOLDERS, itertools.permutations(SWEPT, 2)):
        if not a.startswith("+") or b < a:
            yield folder.format(f"{a},{b}") + "/" + FILES[(len(a) * len(b)) % len(FILES)]
    for cache, name in itertools.product(CACHES, [*STEMS, *(start + kind for start in STARTS for kind in KINDS[:3])]):
        yield cache.format(name, name)
    for start, name in itertools.product([*STARTS, *DASHED], ["experiments-2026", "quantizationconfig", "run_17_of_config_v2", "models/llama3-8b-instruct"]):
        yield f"/w/{start}{name}/k.so"
        yield f"/w/{start}{name}.py"


def hashes():
    """Paths whose hashes look like tokens of services (Mailgun, Databricks, Twilio): in a text they are hidden."""
    for start in ("key-", "dapi", "SK", "cache_key=", "token=", "pul-"):
        for size in (32, 40, 64):
            yield f"/home/u/.cache/{start}{('5a4d3c2b1a0f9e8d' * 4)[:size]}/k.so"


def lines():
    """What logs and variables say of such names: text, not identifiers."""
    for a, b in itertools.permutations(SWEPT, 2):
        yield f'  File "/w/multirun/{a},{b}/train.py", line 12, in <module>'
    for name in ("key_dim", "token_dim", "key", "sig", "n_token", "pass", "cls_token", "low_pass"):
        for value in ("64", "64-half", "float16-128x64", "True-cuda:0", "bfloat16-8-64"):
            yield f"tests/test_attention.py::test_fwd[{name}={value}] (call)"
            yield f"-D{name.upper()}={value.split('-')[0]} -O3"
    for value in ("float", "unsigned long", "cub::KeyValuePair<int, float>", "thrust::tuple<int, long>", "c10::BFloat16", "half2"):
        yield f"void sort<Key, Token>(Key*) [with Key = {value}; Token = {value}]"
    for error in ("KeyError: 'model.layers.0'", "KeyError: 'lm_head.weight_scale_inv'", "TokenError: ('EOF in multi-line statement', (3, 0))",
                  "pulled nvcr.io/nvidia/pytorch:25.10-py3@sha256", "repo:main@sha", "owner/repo:main@3f9a2b1", "image:v1.2@sha256:5a4d3c2b",
                  "cache key: conv2d_nhwc_fp16", "sort key = block_size", "auth: none", "pass: 1/3", "pass 2 of 3", "first pass: 128x128x32",
                  "--key_dim 64 --pass 2 --token-dim 128 --sort-key name", "token=<pad>", "sig: float32[128,64]", "Bearer of bad news",
                  "nccl: key=0x7f3a2b1c00 rank=3", "pip install git+ssh://git@github.com/o/r@v1.2", "Key=LlamaForCausalLM", "cls_token=NormalIterator"):
        yield error
    for name in kernels():
        yield f"error: undefined kernel '{name}' for sm_120"
        yield f"compiling {name}: 3 registers"


if __name__ == "__main__":
    print("\n".join([*kernels(), *paths()]))
