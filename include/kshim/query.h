/* SPDX-License-Identifier: Apache-2.0 */
/* libkshim-query.so.1: does this file have code of this kernel for this GPU? Reads the file, asks no driver,
 * reads no environment variable, needs libc alone. Every function may be called from any thread at any time,
 * but not from a signal handler. docs/query.md has the contract. */
#ifndef KSHIM_QUERY_H
#define KSHIM_QUERY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A library with a higher number has everything in this header. */
#define KSHIM_QUERY_VERSION 1U

enum kshim_code {
  KSHIM_CODE_UNKNOWN = 0, /* not decided: `reason` says why. Not the same as "no" */
  KSHIM_CODE_SASS = 1,    /* machine code that this GPU runs */
  KSHIM_CODE_JIT = 2,     /* PTX that the driver compiles for this GPU when it loads it */
  KSHIM_CODE_NONE = 3     /* neither: a launch fails with error 209 or a relative of it */
};

/* Bits of kshim_question.flags: what the environment variable of that name does to the driver. The library
 * does not look at them: the caller knows for which process it asks. */
#define KSHIM_FORCE_PTX_JIT 1U   /* CUDA_FORCE_PTX_JIT=1 */
#define KSHIM_DISABLE_PTX_JIT 2U /* CUDA_DISABLE_PTX_JIT=1 */
#define KSHIM_FORCE_JIT 4U       /* CUDA_FORCE_JIT=1 */
#define KSHIM_DISABLE_JIT 8U     /* CUDA_DISABLE_JIT=1 */

struct kshim_question {
  size_t size;        /* sizeof(struct kshim_question) */
  const char* path;   /* shared library, program, fatbin, cubin or PTX text */
  const char* kernel; /* mangled name, as cuFuncGetName gives it; NULL: any kernel */
  int major;          /* compute capability: 9 and 0 for sm_90 */
  int minor;
  int driver;     /* as cuDriverGetVersion gives it: 13000 for CUDA 13.0; 0: the newest */
  uint32_t flags; /* KSHIM_FORCE_PTX_JIT ...; 0: none is set */
};

struct kshim_answer {
  size_t size;        /* set it to sizeof(struct kshim_answer): no more than this is written */
  int code;           /* enum kshim_code */
  const char* reason; /* identifier, such as "same_major"; never NULL, valid as long as the process */
  const char* text;   /* the reason as a sentence; never NULL, valid as long as the process */
  uint64_t modules;   /* modules that hold the kernel, or any kernel. A file has one or more; a driver loads
                         each by itself */
  uint64_t sass;      /* how many of them run as machine code, */
  uint64_t jit;       /* how many are compiled from PTX, */
  uint64_t lacking;   /* and for how many there is nothing */
  char image[16];     /* the image that was chosen, of the first module that runs: "sm_86", "compute_80"; else
                         empty */
  char have[256]; /* images that those modules have: "sm_80 sm_90a compute_90"; " ..." at the end where there
                     are more */
};

/* KSHIM_QUERY_VERSION of the library that is loaded. */
uint32_t kshim_query_version(void);

/* Answers a question: the value of `answer->code`. `answer` may be NULL. Never fails: what cannot be answered
 * is KSHIM_CODE_UNKNOWN. Leaves errno as it was. */
int kshim_query(const struct kshim_question* question, struct kshim_answer* answer);

#ifdef __cplusplus
}
#endif
#endif
