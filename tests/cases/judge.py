# SPDX-License-Identifier: Apache-2.0
"""The table of the cases' README: which first cause is right for which category."""

IMAGE = {"no-image-for-arch", "ptx-newer-than-device", "arch-specific-image"}

ACCEPTED = {
    **dict.fromkeys(("local_build_wrong_arch", "arch_dropped_old_gpu", "arch_env_var_wrong", "docker_build_without_gpu",
                     "native_arch_release_build", "tegra_vs_desktop", "loader_picked_wrong_variant"), IMAGE),
    **dict.fromkeys(("prebuilt_packaging_gap", "prebuilt_too_old_for_new_gpu"), IMAGE | {"ptx-newer-than-driver", "invalid-image"}),
    **dict.fromkeys(("per_kernel_gap", "mixed_gpu_host"), IMAGE | {"kernel-missing-from-image"}),
    "driver_too_old_for_ptx": {"ptx-newer-than-driver", "driver-too-old"},
    **dict.fromkeys(("jit_toolchain_too_old", "toolkit_dropped_arch"), {"nvrtc-arch-unsupported", "no-image-for-arch"}),
    "compiled_out_by_arch_guard": {"compiled-out"},
    "silent_wrong_result": IMAGE | {"unchecked-failure"},
    "library_arch_allowlist": {"library-refuses"},
    "driver_insufficient": {"driver-too-old", "driver-mismatch", "no-device"},
    **dict.fromkeys(("wrong_environment_loaded", "dependency_library_gap"),
                    IMAGE | {"mixed-cuda-libraries", "cudnn-mismatch", "library-not-found"}),
    "arch_specific_suffix": {"arch-specific-image"},
    "host_device_guard_mismatch": {"kernel-missing-from-image"},
    "stale_or_misattributed_error": {"stale-error", "benign-probe"},
    "jit_compiler_missing": {"jit-compiler-missing"},
    "driver_too_old_for_fatbin": {"driver-too-old-for-image"},
    "wrong_cached_artifact": {"stale-cache-artifact"},
    "ptx_jit_slow_or_failing": {"jit-tax", "invalid-image", "ptx-newer-than-driver"},
}
NOT_JUDGED = {"tool_limitation", "invalid_image_other"}
SURE = 0.5

# Words of a fix that worked, and the kinds of fix that say the same.
FIX_WORDS = (
    (r"delete the cache|cache_disable|cache_maxsize", {"environment"}),
    (r"^driver|upgrade driver|-> 5\d\d\.", {"upgrade-driver"}),
    (r"gpus all|runtime=nvidia|ptxjitcompiler|install the library|move the library", {"environment", "upgrade-driver"}),
    (r"pip install|wheel|pip uninstall|torch \d|torch-projectors|tensorrt \d|paddlepaddle|conda install|cudatoolkit=", {"reinstall", "downgrade"}),
    (r"cuda 1[0-9](\.\d)?( stack)?\.?$", {"reinstall", "rebuild", "downgrade"}),
    (r"source fix|code fix|launch checks", {"code"}),
    (r"arch|gencode|compute_|rebuild|build|explicit list|sm_|compil", {"rebuild", "code"}),
)


def judged(category):
    return category not in NOT_JUDGED


def verdict(category, first):
    """right, unknown or wrong; `first` is the first finding or None."""
    if category == "false_positive_warning":
        return "right" if first is None or first["severity"] != "error" else "unknown" if first["cause"] == "unknown" else "wrong"
    if first is None or first["cause"] == "unknown":
        return "unknown"
    return "right" if first["cause"] in ACCEPTED[category] else "wrong"
