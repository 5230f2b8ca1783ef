/* SPDX-License-Identifier: Apache-2.0 */
/* What preloading a library costs when the library does nothing: the yardstick for processes without CUDA. */
extern int kshim_empty_preload;
int kshim_empty_preload = 0;
