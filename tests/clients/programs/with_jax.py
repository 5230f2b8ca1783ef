# SPDX-License-Identifier: Apache-2.0
# A sum of JAX's: XLA compiles it by the ptxas that it finds, of CUDA_ROOT or of PATH. JAX looks for /dev/nvidia0 first, which no simulated GPU has.
import jax
import jax._src.hardware_utils as hardware
import jax.numpy as jnp

hardware.has_visible_nvidia_gpu = lambda: True
assert [device.platform for device in jax.devices()] == ["gpu"]
print(jnp.ones(8) + 1)  # refused
