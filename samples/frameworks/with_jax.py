# SPDX-License-Identifier: Apache-2.0
"""A sum, a product, a gradient and a convolution. XLA compiles for the GPU while it runs: its own code is in memory alone.

--driver-alone: JAX looks for /dev/nvidia0 before it asks the driver, and a simulated GPU has no such file."""
import sys

if "--driver-alone" in sys.argv:
    from jax._src import hardware_utils
    hardware_utils.has_visible_nvidia_gpu = lambda: True

import jax  # noqa: E402  (after the line above)
import jax.numpy as jnp  # noqa: E402

print("JAX", jax.__version__, "runs on", jax.devices()[0].platform)
x = jnp.ones((64, 64)) + 1
print("add", x.shape)
print("matmul", (x @ x).block_until_ready().shape)
print("grad", jax.jit(jax.grad(lambda w: jnp.tanh(x @ w).sum()))(x).block_until_ready().shape)
print("conv", jax.lax.conv(jnp.ones((1, 3, 8, 8)), jnp.ones((4, 3, 3, 3)), (1, 1), "SAME").block_until_ready().shape)
