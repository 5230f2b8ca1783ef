// SPDX-License-Identifier: Apache-2.0
// The library whose opening stops auditor.c.
extern int kshim_test_nothing;
int kshim_test_nothing = 1;
