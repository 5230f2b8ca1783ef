# SPDX-License-Identifier: Apache-2.0
"""Which first cause is right for which category of situations.jsonl."""

IMAGE = {"no-image-for-arch", "ptx-newer-than-device", "arch-specific-image"}

ACCEPTED = {
    **dict.fromkeys(("local-build-wrong-arch", "arch-dropped-old-gpu", "arch-env-var-wrong", "docker-build-without-gpu",
                     "native-arch-release-build", "tegra-vs-desktop", "loader-picked-wrong-variant"), IMAGE),
    **dict.fromkeys(("prebuilt-packaging-gap", "prebuilt-too-old-for-new-gpu"), IMAGE | {"ptx-newer-than-driver", "invalid-image"}),
    **dict.fromkeys(("per-kernel-gap", "mixed-gpu-host"), IMAGE | {"kernel-missing-from-image"}),
    "driver-too-old-for-ptx": {"ptx-newer-than-driver", "driver-too-old"},
    **dict.fromkeys(("jit-toolchain-too-old", "toolkit-dropped-arch"), {"nvrtc-arch-unsupported", "no-image-for-arch"}),
    "compiled-out-by-arch-guard": {"compiled-out"},
    "silent-wrong-result": IMAGE | {"unchecked-failure"},
    "library-arch-allowlist": {"library-refuses"},
    "driver-insufficient": {"driver-too-old", "driver-mismatch", "no-device"},
    **dict.fromkeys(("wrong-environment-loaded", "dependency-library-gap"),
                    IMAGE | {"mixed-cuda-libraries", "cudnn-mismatch", "library-not-found"}),
    "arch-specific-suffix": {"arch-specific-image"},
    "host-device-guard-mismatch": {"kernel-missing-from-image"},
    "stale-or-misattributed-error": {"stale-error", "benign-probe"},
    "jit-compiler-missing": {"jit-compiler-missing"},
    "driver-too-old-for-fatbin": {"driver-too-old-for-image"},
    "wrong-cached-artifact": {"stale-cache-artifact"},
    "ptx-jit-slow-or-failing": {"jit-tax", "invalid-image", "ptx-newer-than-driver"},
}
SURE = 0.5


def verdict(category, first):
    """right, unknown or wrong; `first` is the first finding or None."""
    if category == "false-positive-warning":
        return "right" if first is None or first["severity"] != "error" else "unknown" if first["cause"] == "unknown" else "wrong"
    if first is None or first["cause"] == "unknown":
        return "unknown"
    return "right" if first["cause"] in ACCEPTED[category] else "wrong"
