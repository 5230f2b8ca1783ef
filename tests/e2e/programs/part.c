// SPDX-License-Identifier: Apache-2.0
// A library by the name of one of NVIDIA's, of a release that it exports as cuDNN's parts do.
#ifdef DATUM
const unsigned DATUM = RELEASE;
#endif
int PART(void);
int PART(void) { return RELEASE; }
