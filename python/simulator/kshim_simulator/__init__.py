# SPDX-License-Identifier: Apache-2.0
"""The simulated driver of kshim. `kshim.simulator()` says where it is."""
