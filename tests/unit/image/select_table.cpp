// SPDX-License-Identifier: Apache-2.0
// Containers: which image is taken, by which rule, or with which error.
#include "select_case.h"

namespace kshim::image::table {

using enum Rule;
using enum Choice;

const std::vector<Chosen> kChosen = {
    // C1, C2: the plain cases.
    {"sm_80", "8.0", sass, 0, same_major, nothing_fits},
    {"sm_75 sm_80 sm_90", "8.6", sass, 1, same_major, closest_minor},
    {"sm_80 sm_87", "8.7", sass, 1, tegra_exact, closest_minor},
    {"sm_80", "8.7", none, 209, nothing_fits, same_major},
    {"sm_80 compute_80@9.0", "8.7", jit, 1, ptx_forward, nothing_fits},
    // C3: SASS comes before PTX, however old.
    {"sm_80 compute_89@9.0", "8.9", sass, 0, sass_before_ptx, highest_ptx},
    {"compute_89@9.0 sm_80", "8.9", sass, 1, sass_before_ptx, highest_ptx},
    {"sm_80 compute_80@9.0", "9.0", jit, 1, ptx_forward, sass_before_ptx},
    {"sm_80 compute_89@9.0", "8.9 CUDA_DISABLE_PTX_JIT", sass, 0, same_major, sass_before_ptx},
    {"sm_80 compute_89@9.0", "8.9 driver=12.9", sass, 0, same_major, sass_before_ptx},
    // T1: Tile IR comes last.
    {"tile_100@13.1 sm_90", "9.0", sass, 1, same_major, tileir_compiled},
    {"tile_100@13.1 compute_80@9.0", "9.0", jit, 1, ptx_forward, tileir_compiled},
    {"tile_100@13.1 sm_90", "12.0", jit, 0, tileir_compiled, nothing_fits},
    {"tile_100@13.1 sm_90", "7.5", none, 209, nothing_fits, tileir_compiled},
    // C3M: the highest minor that fits.
    {"sm_80 sm_86", "8.9", sass, 1, closest_minor, same_major},
    {"sm_86 sm_80", "8.9", sass, 0, closest_minor, same_major},
    {"sm_80 sm_86 sm_89 sm_90", "8.9", sass, 2, closest_minor, same_major},
    {"sm_80 sm_89", "8.6", sass, 0, same_major, closest_minor},
    {"sm_80 sm_86 compute_89@9.0", "8.9", sass, 1, closest_minor, sass_before_ptx},
    {"sm_100f sm_103", "10.3", sass, 1, closest_minor, specific_first},
    {"sm_80 sm_80", "8.9", sass, 0, same_major, closest_minor},  // equals: the first
    // C3S: a before f before base.
    {"sm_100 sm_100f sm_100a", "10.0", sass, 2, specific_first, closest_minor},
    {"sm_100a sm_100f sm_100", "10.0", sass, 0, specific_first, closest_minor},
    {"sm_90 sm_90a", "9.0", sass, 1, specific_first, arch_specific},
    {"sm_100 sm_100f", "10.3", sass, 1, specific_first, family_specific},
    {"sm_100 sm_100a", "10.3", sass, 0, same_major, specific_first},
    // C4, C5: only-a and only-f files.
    {"sm_90a", "9.0", sass, 0, arch_specific, nothing_fits},
    {"sm_90a", "10.0", none, 209, nothing_fits, arch_specific},
    {"sm_90a compute_90a@8.0", "12.0", none, 209, nothing_fits, ptx_arch_specific},
    {"sm_90a compute_90a@9.0 compute_90@9.0", "10.0", jit, 2, ptx_forward,
     nothing_fits},  // nvcc -arch=sm_90a
    {"sm_100f sm_120f", "12.1", sass, 1, family_specific, nothing_fits},
    {"sm_100f", "12.0", none, 209, nothing_fits, family_specific},
    // P8: the newest PTX.
    {"compute_75@9.0 compute_80@9.0 compute_90@9.0", "8.9", jit, 1, highest_ptx, ptx_forward},
    {"compute_80@9.0 compute_75@9.0", "8.9", jit, 0, highest_ptx, ptx_forward},
    {"compute_80@7.0 compute_80@8.0", "8.9", jit, 1, highest_ptx, ptx_forward},
    {"compute_80@8.0 compute_80@7.0", "8.9", jit, 0, highest_ptx, ptx_forward},
    {"compute_80@8.0 compute_80@9.0", "8.9 driver=12.9", jit, 0, ptx_forward, highest_ptx},
    {"compute_80@8.0 compute_80@8.0", "8.9", jit, 0, ptx_forward, highest_ptx},  // equals: the first
    {"compute_90@9.0 compute_90a@9.0", "9.0", jit, 1, highest_ptx, ptx_arch_specific},
    // P4, P6, P7, E2, E4: PTX that would fit, and what forbids it.
    {"sm_75 compute_75@9.0", "8.6 driver=12.9", none, 222, ptx_isa_gate, nothing_fits},
    {"compute_80@9.0 compute_75@8.0", "8.6 driver=12.9", jit, 1, ptx_forward, ptx_isa_gate},
    {"sm_75 compute_75@9.0", "8.6 no-compiler", none, 221, compiler_missing, nothing_fits},
    {"sm_75", "8.6 no-compiler", none, 209, nothing_fits, compiler_missing},
    {"compute_90a@7.8", "9.0", none, 218, ptx_version_too_old, nothing_fits},
    {"compute_90a@7.8 compute_90@7.8", "9.0", jit, 1, ptx_forward, ptx_version_too_old},
    {"sm_75 compute_75@9.0", "8.6 CUDA_DISABLE_PTX_JIT", none, 223, disable_ptx_jit, nothing_fits},
    {"sm_75 compute_90@9.0", "8.6 CUDA_DISABLE_PTX_JIT", none, 209, nothing_fits, disable_ptx_jit},
    {"sm_75 compute_75@9.0", "8.6 CUDA_DISABLE_JIT", none, 223, disable_jit, nothing_fits},
    {"sm_75 compute_75@9.0", "7.5 CUDA_DISABLE_JIT", sass, 0, same_major, disable_jit},
    // E1, E3: cubins ignored.
    {"sm_90", "9.0 CUDA_FORCE_PTX_JIT", none, 209, force_ptx_jit, nothing_fits},
    {"sm_90 compute_90@9.0", "9.0 CUDA_FORCE_PTX_JIT", jit, 1, ptx_forward, sass_before_ptx},
    {"sm_80", "9.0 CUDA_FORCE_PTX_JIT", none, 209, nothing_fits, force_ptx_jit},
    {"sm_90", "9.0 CUDA_FORCE_JIT", none, 209, force_jit, nothing_fits},
    {"sm_90 compute_90@9.0", "9.0 CUDA_FORCE_JIT", jit, 1, ptx_forward, force_jit},
    {"sm_90 compute_90@9.0", "9.0 driver=12.0 CUDA_FORCE_PTX_JIT", none, 222, ptx_isa_gate, force_ptx_jit},
    {"sm_90 compute_90@9.0", "9.0 CUDA_FORCE_PTX_JIT CUDA_DISABLE_PTX_JIT", none, 223, disable_ptx_jit,
     force_ptx_jit},
    // N1: nothing at all.
    {"", "9.0", none, 209, nothing_fits, same_major},
    {"sm_90 sm_100 compute_120@9.0", "8.9", none, 209, nothing_fits, ptx_forward},
    {"lto_90", "9.0", none, 209, nothing_fits, ltoir_not_executable},
    {"lto_90 sm_90", "9.0", sass, 1, same_major, ltoir_not_executable},
    // N2: which refusal comes first.
    {"compute_75@9.0 compute_90a@7.8", "9.0 driver=12.9", none, 222, refusal_order, ptx_isa_gate},
    {"compute_90a@7.8 compute_75@9.0", "9.0 driver=12.9", none, 222, refusal_order, ptx_version_too_old},
    {"compute_75@9.0 compute_80@9.0", "9.0 driver=12.9", none, 222, ptx_isa_gate, refusal_order},
    {"compute_75@9.0", "9.0 driver=12.9 no-compiler CUDA_DISABLE_PTX_JIT", none, 223, disable_ptx_jit,
     compiler_missing},
    {"compute_75@9.0", "9.0 driver=12.9 no-compiler", none, 221, compiler_missing, ptx_isa_gate},
    // N3: a loose text is compiled as it is.
    {"compute_75@6.3", "6.1", none, 218, loose_ptx_misfit, nothing_fits, Packaging::loose},
    {"compute_75@6.3", "6.1", none, 209, nothing_fits, loose_ptx_misfit},
    {"compute_90a@8.0", "10.0", none, 218, loose_ptx_misfit, nothing_fits, Packaging::loose},
    {"compute_75@9.0", "8.6 driver=12.9", none, 222, ptx_isa_gate, loose_ptx_misfit, Packaging::loose},
    {"compute_75@9.0", "8.6", jit, 0, ptx_forward, loose_ptx_misfit, Packaging::loose},
    {"sm_75", "6.1", none, 209, nothing_fits, loose_ptx_misfit, Packaging::loose},
    // Real containers: cuBLAS, cuDNN, NCCL of CUDA 13.0.
    {"sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120@9.0", "8.9", sass, 2, closest_minor, sass_before_ptx},
    {"sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120@9.0", "12.1", sass, 5, sass_before_ptx, highest_ptx},
    {"sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120@9.0", "11.0", none, 209, nothing_fits, ptx_forward},
    {"sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120@9.0", "6.1", none, 209, nothing_fits, ptx_forward},
    {"sm_75 sm_80 sm_90a sm_100f sm_120f sm_121 compute_121@9.0", "12.1", sass, 5, closest_minor,
     sass_before_ptx},
    {"sm_75 sm_80 sm_90a sm_100f sm_120f sm_121 compute_121@9.0", "10.3", sass, 3, family_specific,
     closest_minor},
};

}  // namespace kshim::image::table
