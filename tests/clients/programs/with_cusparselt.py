# SPDX-License-Identifier: Apache-2.0
"""cusparseLtInit of the library that is named: it offers each of its kernels to the driver, and keeps those that load."""
import ctypes
import sys

handle = ctypes.create_string_buffer(1 << 16)
status = ctypes.CDLL(sys.argv[1]).cusparseLtInit(handle)
sys.exit(status)
