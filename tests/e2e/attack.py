#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What attackers found: hosts that crashed, or got another answer, because of the shim; reports without an end."""
import e2e

ATTACK = e2e.PROGRAMS / "e2e_attack"
OWN = e2e.PROGRAMS / "e2e_attack_own"
SECOND = e2e.PROGRAMS / "libe2e_second.so"
THIRD = e2e.PROGRAMS / "libe2e_third.so"
PLUGIN = e2e.SAMPLES / "06_dlopen_library" / "libscale.so"
e2e.require(e2e.SHIM, e2e.SIMULATOR / "libcuda.so.1", ATTACK, OWN, SECOND, THIRD, PLUGIN)

PTX = """.version {isa}
.target {target}
.address_size 64
.visible .entry late() {{ ret; }}
"""


class Attack(e2e.Case):
    def attack(self, *argv, devices="8.6", **more):
        return self.run_program(ATTACK, *argv, env=e2e.preloaded(devices), **more)

    def test_libraries_are_unloaded_beside_a_search(self):
        done = self.run_program(ATTACK, "unloading", SECOND, THIRD, env=e2e.clean_environment(LD_PRELOAD=e2e.SHIM))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_plugin_is_loaded_again_elsewhere(self):
        bare = self.run_program(ATTACK, "reloading", PLUGIN, env=e2e.simulated("7.5"))
        done = self.attack("reloading", PLUGIN, devices="7.5")
        self.assertEqual((done.returncode, done.stdout), (0, bare.stdout), done.stderr)

    def test_exit_on_a_small_signal_stack(self):
        done = self.attack("small_stack", PLUGIN, devices="7.5")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(self.reports()[0][-1]["type"], "end")

    def test_a_name_that_cannot_be_read(self):
        bare = self.run_program(ATTACK, "bad_name", env=e2e.simulated("8.6"))
        self.assertEqual(bare.returncode, 0)
        done = self.attack("bad_name")
        self.assertEqual((done.returncode, done.stdout), (0, bare.stdout), done.stderr)

    def test_the_programs_own_definition(self):
        done = self.run_program(OWN, "own", env=e2e.clean_environment(LD_PRELOAD=e2e.SHIM))
        self.assertEqual((done.returncode, done.stdout), (0, "77\n"), done.stderr)


class Loads(e2e.Case):
    def loads(self, target, rounds, isa="7.8"):
        (self.folder / "image.ptx").write_text(PTX.format(isa=isa, target=target))
        done = self.run_program(ATTACK, "loads", "image.ptx", rounds, env=e2e.preloaded("8.6"))
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.reports()[0], int(done.stdout)

    def test_a_loose_image_is_known_by_hash_and_size(self):
        records, code = self.loads("sm_90", 1)
        self.assertNotEqual(code, 0)
        module, = e2e.of_type(records, "module")
        self.assertEqual(module["size"], (self.folder / "image.ptx").stat().st_size)
        self.assertRegex(module["content_hash"], "^[0-9a-f]{16}$")
        gap, = e2e.of_type(records, "gap")
        self.assertEqual((gap["have"], gap["need"]), (["compute_90"], "sm_86"))
        self.assertEqual((gap["kernels"], gap["complete"]), (["late"], True))

    def test_failing_loads_in_a_loop(self):
        records, _ = self.loads("sm_90", 5000)
        self.assertEqual(len(e2e.of_type(records, "module")), 1)
        self.assertEqual([failure["module"] for failure in e2e.of_type(records, "failure")], [1])
        self.assertEqual([record["count"] for record in e2e.of_type(records, "repeat")], [2, 10, 100, 1000, 5000])
        self.assertEqual((records[-1]["modules"], records[-1]["dropped"]), (5000, 0))

    def test_loads_in_a_loop(self):
        records, code = self.loads("sm_80", 5000)
        self.assertEqual(code, 0)
        self.assertEqual(len(e2e.of_type(records, "module")), 4096)
        self.assertEqual((records[-1]["modules"], records[-1]["dropped"]), (5000, 0))


if __name__ == "__main__":
    e2e.main()
