-- SPDX-License-Identifier: Apache-2.0
-- Modulefile of Lmod, MODULEPATH/kshim/1.0.lua: records what GPU programs lack, in the user's folder. The shim comes after
-- other preloads: those that are there, and those that a later module puts in front (as XALT's does).
-- Tried (tests/e2e/recipes.py): run by Lmod 8.6, alone and in either order with a module that preloads as XALT's does.
whatis("Name: kshim")
whatis("Description: says which library lacks code for this GPU")
local lib = os.getenv("KSHIM_LIB") or "/opt/kshim/lib"
append_path("LD_PRELOAD", pathJoin(lib, "libkshim.so"))
setenv("KSHIM_REPORT", pathJoin(os.getenv("HOME"), "kshim-report", "%h.%r.%p.jsonl"))
