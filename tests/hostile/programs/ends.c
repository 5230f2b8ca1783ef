// SPDX-License-Identifier: Apache-2.0
// Built as `nvcc`, a compiler by its name: `nvcc HOW STATUS -arch=sm_61` ends in that way with that status.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int g_status;
static const char* g_how;

static void exit_again(void) { exit(g_status); }
static void told(int status, void* unused) {
  (void)unused;
  printf("told %d\n", status);
}
static void on_signal(int signal) {
  (void)signal;
  if (strcmp(g_how, "handler-exit") == 0) exit(g_status);
  _exit(g_status);
}
static void* end_in_a_thread(void* unused) {
  if (strcmp(g_how, "thread") == 0) exit(g_status);
  usleep(20000);
  _exit(g_status);
  return unused;
}

/// A name of glibc's that C leaves to programs.
#if defined(OWN_ON_EXIT)
__attribute__((visibility("default"))) int on_exit(void (*function)(int, void*), void* argument);
int on_exit(void (*function)(int, void*), void* argument) {
  (void)function, (void)argument;
  printf("own\n");
  return 0;
}
#endif

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  g_how = argv[1];
  g_status = atoi(argv[2]);
  setvbuf(stdout, NULL, _IONBF, 0);
  const char* const how = g_how;
  pthread_t thread;
  if (strcmp(how, "return") == 0) return g_status;
  if (strcmp(how, "exit") == 0) exit(g_status);
  if (strcmp(how, "_exit") == 0) _exit(g_status);
  if (strcmp(how, "_Exit") == 0) _Exit(g_status);
  if (strcmp(how, "quick") == 0) quick_exit(g_status);
  if (strcmp(how, "group") == 0) syscall(SYS_exit_group, g_status);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "killed") == 0) {
    sleep(1);
    raise(SIGKILL);
  }
  if (strcmp(how, "again") == 0) {
    atexit(exit_again);
    return 0;
  }
  if (strcmp(how, "own") == 0) {
    on_exit(told, NULL);
    return g_status;
  }
  if (strncmp(how, "handler", 7) == 0) {
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
  }
  if (strcmp(how, "thread") == 0 || strcmp(how, "main-first") == 0) {
    pthread_create(&thread, NULL, end_in_a_thread, NULL);
    if (how[0] == 'm') pthread_exit(NULL);
    pthread_join(thread, NULL);
  }
  if (strcmp(how, "fork") == 0 || strcmp(how, "vfork") == 0) {
    int status = 0;
    const pid_t child = how[0] == 'v' ? vfork() : fork();
    if (child == 0) {
      if (how[0] == 'v') {
        execl("/no/such/program", "program", (char*)NULL);
        _exit(g_status);
      }
      exit(g_status);
    }
    waitpid(child, &status, 0);
    printf("child %x\n", (unsigned)status);
    return 0;
  }
  if (strcmp(how, "closed") == 0) {
    for (int fd = 0; fd < 1100; ++fd) close(fd);
    return g_status;
  }
  return 90;
}
