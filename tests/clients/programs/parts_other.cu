// SPDX-License-Identifier: Apache-2.0
__device__ float other(float value) { return value * 2 + 1; }
