# SPDX-License-Identifier: Apache-2.0
# What the test NAME.kshim.clean of kshim_attach() runs: cmake -DREPORT=folder -P this. Removes the reports that lie in the
# folder and nothing else: somebody may name a folder that holds more (REPORT .).
string(REGEX REPLACE "([[*?])" "[\\1]" folder "${REPORT}") # they mean something to GLOB
file(GLOB reports LIST_DIRECTORIES false RELATIVE "${REPORT}" "${folder}/*.jsonl")
foreach(report IN LISTS reports)
  file(REMOVE "${REPORT}/${report}")
endforeach()
