-- SPDX-License-Identifier: Apache-2.0
-- Modulefile of Lmod, MODULEPATH/kshim/1.0.lua: records what GPU programs lack, in the folder of who runs them. The shim stands behind
-- what is preloaded already, and behind what a later module puts in front (XALT's does).
whatis("Name: kshim")
whatis("Description: says which library lacks code for this GPU")
local lib = os.getenv("KSHIM_LIB") or "/opt/kshim/lib"
append_path("LD_PRELOAD", pathJoin(lib, "libkshim.so"))
setenv("KSHIM_REPORT", pathJoin(os.getenv("HOME"), "kshim-report", "%h.%r.%p.jsonl"))
