/* SPDX-License-Identifier: Apache-2.0
   A library for loaded_objects_test.cpp. */
#include <stdlib.h>
int probe(void);
int probe(void) { return KSHIM_TEST_VALUE; }
void* use_of_an_import(void);
void* use_of_an_import(void) { return malloc(1); }
