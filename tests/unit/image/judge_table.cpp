// SPDX-License-Identifier: Apache-2.0
// Single images: facts of compat_rules.def, one line each. Sources stand there, beside each rule.
#include "select_case.h"

namespace kshim::image::table {

using enum Rule;

const std::vector<Judged> kJudged = {
    // C1: same major, minor upwards.
    {"sm_80", "8.0", true, same_major, tegra_exact},
    {"sm_80", "8.6", true, same_major, tegra_exact},
    {"sm_80", "8.9", true, same_major, closest_minor},
    {"sm_86", "8.9", true, same_major, closest_minor},
    {"sm_86", "8.0", false, same_major, ptx_forward},
    {"sm_89", "8.6", false, same_major, ptx_forward},
    {"sm_90", "10.0", false, same_major, arch_specific},
    {"sm_100", "12.0", false, same_major, family_specific},
    {"sm_120", "10.0", false, same_major, family_specific},
    {"sm_70", "7.5", true, same_major, tegra_exact},
    {"sm_75", "7.0", false, same_major, tegra_exact},
    {"sm_60", "6.1", true, same_major, tegra_exact},
    {"sm_52", "5.0", false, same_major, tegra_exact},
    {"sm_100", "10.3", true, same_major, thor_alone},
    {"sm_103", "10.0", false, same_major, thor_alone},
    {"sm_120", "12.1", true, same_major, tegra_exact},  // GB10 follows the desktop rule
    {"sm_121", "12.0", false, same_major, tegra_exact},
    {"sm_130", "13.4", true, same_major, nothing_fits},  // younger than every table
    {"sm_61", "6.1 CUDA_DISABLE_PTX_JIT", true, same_major, disable_ptx_jit},
    {"sm_61", "6.1 CUDA_DISABLE_JIT", true, same_major, disable_jit},
    {"sm_61", "6.1 no-compiler", true, same_major, compiler_missing},
    {"sm_80", "8.6 driver=11.0", true, same_major, ptx_isa_gate},
    // C2: Tegra runs its own, and nobody else runs Tegra's.
    {"sm_87", "8.7", true, tegra_exact, same_major},
    {"sm_80", "8.7", false, tegra_exact, same_major},
    {"sm_86", "8.7", false, tegra_exact, same_major},
    {"sm_87", "8.9", false, tegra_exact, same_major},
    {"sm_87", "8.6", false, tegra_exact, same_major},
    {"sm_89", "8.7", false, tegra_exact, same_major},
    {"sm_70", "7.2", false, tegra_exact, same_major},
    {"sm_72", "7.5", false, tegra_exact, same_major},
    {"sm_72", "7.2", true, tegra_exact, same_major},
    {"sm_60", "6.2", false, tegra_exact, same_major},
    {"sm_61", "6.2", false, tegra_exact, same_major},
    {"sm_52", "5.3", false, tegra_exact, same_major},
    {"sm_30", "3.2", false, tegra_exact, same_major},
    {"sm_32", "3.5", false, tegra_exact, same_major},
    {"sm_87", "9.0", false, same_major, tegra_exact},  // another major: no Tegra needed to refuse it
    // C2R, C2X: Thor has two names and no relatives.
    {"sm_101", "11.0", true, thor_renamed, same_major},
    {"sm_101a", "11.0", true, thor_renamed, arch_specific},
    {"sm_101f", "11.0", true, thor_renamed, family_specific},
    {"sm_110", "10.1", true, thor_renamed, same_major},
    {"sm_110f", "10.1", true, thor_renamed, family_specific},
    {"compute_101a@8.8", "11.0", true, thor_renamed, ptx_arch_specific},
    {"compute_101f@8.8", "11.0", true, thor_renamed, ptx_family_specific},
    {"compute_110@9.0", "10.1", true, thor_renamed, ptx_forward},
    {"sm_101", "10.1", true, same_major, thor_renamed},
    {"sm_110", "11.0", true, same_major, thor_alone},
    {"sm_100", "10.1", false, thor_alone, same_major},
    {"sm_101", "10.3", false, thor_alone, same_major},
    {"sm_100", "11.0", false, same_major, thor_renamed},
    // C4: `a` is for exactly one.
    {"sm_90a", "9.0", true, arch_specific, same_major},
    {"sm_90a", "10.0", false, arch_specific, same_major},
    {"sm_100a", "10.0", true, arch_specific, family_specific},
    {"sm_100a", "10.3", false, arch_specific, same_major},
    {"sm_103a", "10.0", false, arch_specific, same_major},
    {"sm_120a", "12.1", false, arch_specific, same_major},
    {"sm_121a", "12.1", true, arch_specific, same_major},
    {"sm_90", "9.0", true, same_major, arch_specific},
    // C5: `f` is for the family, upwards.
    {"sm_100f", "10.0", true, family_specific, arch_specific},
    {"sm_100f", "10.3", true, family_specific, same_major},
    {"sm_100f", "10.7", true, family_specific, same_major},
    {"sm_100f", "10.1", false, family_specific, thor_alone},
    {"sm_100f", "11.0", false, family_specific, same_major},
    {"sm_100f", "12.0", false, family_specific, same_major},
    {"sm_103f", "10.0", false, family_specific, same_major},
    {"sm_103f", "10.3", true, family_specific, same_major},
    {"sm_120f", "12.0", true, family_specific, same_major},
    {"sm_120f", "12.1", true, family_specific, same_major},
    {"sm_121f", "12.0", false, family_specific, same_major},
    {"sm_110f", "11.0", true, family_specific, thor_renamed},
    {"sm_120f", "12.4", true, family_specific,
     same_major},  // joins the family upwards, younger than the table
    {"sm_120", "12.1", true, same_major, family_specific},
    // P1: PTX goes upwards, across majors and onto Tegra.
    {"compute_80@7.0", "8.0", true, ptx_forward, same_major},
    {"compute_80@7.0", "9.0", true, ptx_forward, same_major},
    {"compute_80@7.0", "12.1", true, ptx_forward, same_major},
    {"compute_80@7.0", "8.7", true, ptx_forward, tegra_exact},
    {"compute_87@7.4", "8.9", true, ptx_forward, tegra_exact},
    {"compute_90@7.8", "8.9", false, ptx_forward, same_major},
    {"compute_86@7.1", "8.0", false, ptx_forward, same_major},
    {"compute_120@9.0", "10.0", false, ptx_forward, ptx_family_specific},
    {"compute_120@9.0", "11.0", false, ptx_forward, thor_renamed},
    {"compute_90@9.0", "8.9 driver=12.0", false, ptx_forward, ptx_isa_gate},  // the target is asked first
    // P2, P3: suffixes hold for PTX too.
    {"compute_90a@8.0", "9.0", true, ptx_arch_specific, ptx_forward},
    {"compute_90a@8.0", "10.0", false, ptx_arch_specific, ptx_forward},
    {"compute_100a@8.6", "10.3", false, ptx_arch_specific, ptx_family_specific},
    {"compute_90@8.0", "10.0", true, ptx_forward, ptx_arch_specific},
    {"compute_100f@8.8", "10.0", true, ptx_family_specific, ptx_forward},
    {"compute_100f@8.8", "10.3", true, ptx_family_specific, ptx_forward},
    {"compute_100f@8.8", "12.0", false, ptx_family_specific, ptx_forward},
    {"compute_103f@8.8", "10.0", false, ptx_family_specific, ptx_forward},
    {"compute_100@8.6", "12.0", true, ptx_forward, ptx_family_specific},
    // P4: the driver's compiler must know the PTX ISA.
    {"compute_75@9.0", "8.6 driver=12.9", false, ptx_isa_gate, ptx_forward},
    {"compute_75@8.8", "8.6 driver=12.2", false, ptx_isa_gate, ptx_forward},
    {"compute_75@8.2", "8.6 driver=12.2", true, ptx_forward, ptx_isa_gate},
    {"compute_75@9.0", "8.6 driver=13.0", true, ptx_forward, ptx_isa_gate},
    {"compute_75@9.1", "8.6 driver=13.0", false, ptx_isa_gate, ptx_forward},
    {"compute_75@8.5", "8.6 driver=12.5", true, ptx_forward, ptx_isa_gate},
    {"compute_75@8.6", "8.6 driver=12.6", false, ptx_isa_gate, ptx_forward},
    {"compute_90a@8.0", "9.0 driver=11.8", false, ptx_isa_gate, ptx_arch_specific},
    {"compute_101f@8.8", "11.0 driver=12.8", false, ptx_isa_gate, thor_renamed},
    {"compute_75", "8.6 driver=12.2", true, ptx_forward, ptx_isa_gate},  // a PTX ISA nobody has read
    {"compute_75@9.9", "8.6", true, ptx_forward, ptx_isa_gate},          // a driver nobody has asked
    {"compute_75@11.0", "8.6 driver=15.0", true, ptx_forward,
     ptx_isa_gate},                                                         // a driver younger than the table
    {"compute_30@4.3", "5.2 driver=7.5", true, ptx_forward, ptx_isa_gate},  // and one older than it
    {"compute_30@5.0", "5.2 driver=7.5", false, ptx_isa_gate, ptx_forward},
    // P5: what the toolkit has dropped, the driver's compiler still takes.
    {"compute_52@4.1", "7.5 driver=13.0", true, old_ptx_stays_valid, ptx_forward},
    {"compute_70@6.0", "12.0 driver=13.0", true, old_ptx_stays_valid, ptx_forward},
    {"compute_52@4.1", "7.5", true, old_ptx_stays_valid, ptx_forward},  // unknown driver = newest
    {"compute_52@4.1", "7.5 driver=12.9", true, ptx_forward, old_ptx_stays_valid},
    {"compute_52@4.1", "5.0 driver=13.0", false, ptx_forward, old_ptx_stays_valid},
    // P6: compiling needs the compiler.
    {"compute_80@7.0", "9.0 no-compiler", false, compiler_missing, ptx_forward},
    {"compute_80@9.0", "9.0 driver=12.0 no-compiler", false, compiler_missing, ptx_isa_gate},
    {"compute_90@7.8", "8.0 no-compiler", false, ptx_forward, compiler_missing},
    // P7: a .version older than the target is no PTX.
    {"compute_90a@7.8", "9.0", false, ptx_version_too_old, ptx_arch_specific},
    {"compute_120f@8.7", "12.0", false, ptx_version_too_old, ptx_family_specific},
    {"compute_75@6.2", "8.6", false, ptx_version_too_old, ptx_forward},
    {"compute_75@6.3", "8.6", true, ptx_forward, ptx_version_too_old},
    {"compute_990@1.0", "99.0", true, ptx_forward, ptx_version_too_old},  // a target that no row names
    // L1: LTO-IR is for linkers.
    {"lto_90", "9.0", false, ltoir_not_executable, same_major},
    {"lto_90a", "9.0", false, ltoir_not_executable, arch_specific},
    {"sm_90", "9.0", true, same_major, ltoir_not_executable},
    // T1, T2: Tile IR, for 8.0 and later, by a driver of its own version or a newer one.
    {"tile_100@13.1", "8.0", true, tileir_compiled, ltoir_not_executable},
    {"tile_100@13.1", "12.1", true, tileir_compiled, same_major},
    {"tile_100@13.1", "7.5", false, tileir_compiled, tileir_version},
    {"tile_80@13.4", "9.0 driver=13.3", false, tileir_version, tileir_compiled},
    {"tile_80@13.4", "9.0 driver=13.4", true, tileir_compiled, tileir_version},
    // E1 to E4: switches.
    {"sm_90", "9.0 CUDA_FORCE_PTX_JIT", false, force_ptx_jit, same_major},
    {"sm_90", "9.0 CUDA_FORCE_PTX_JIT CUDA_FORCE_JIT", false, force_ptx_jit, force_jit},
    {"sm_80", "9.0 CUDA_FORCE_PTX_JIT", false, same_major, force_ptx_jit},  // it did not fit before either
    {"compute_90@7.8", "9.0 CUDA_FORCE_PTX_JIT", true, ptx_forward, force_ptx_jit},
    {"sm_90", "9.0 CUDA_FORCE_JIT", false, force_jit, same_major},
    {"compute_90@7.8", "9.0 CUDA_FORCE_JIT", true, ptx_forward, force_jit},
    {"compute_90@7.8", "9.0 CUDA_DISABLE_PTX_JIT", false, disable_ptx_jit, ptx_forward},
    {"compute_90@7.8", "9.0 CUDA_DISABLE_PTX_JIT CUDA_DISABLE_JIT", false, disable_ptx_jit, disable_jit},
    {"compute_90@7.8", "8.0 CUDA_DISABLE_PTX_JIT", false, ptx_forward, disable_ptx_jit},
    {"compute_90@7.8", "9.0 CUDA_DISABLE_JIT", false, disable_jit, ptx_forward},
    {"compute_90@7.8", "8.0 CUDA_DISABLE_JIT", false, ptx_forward, disable_jit},
};

}  // namespace kshim::image::table
