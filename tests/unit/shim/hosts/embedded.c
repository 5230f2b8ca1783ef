// SPDX-License-Identifier: Apache-2.0
// A program with a Python in it: host.ask(RELEASE) is what the shim's reader sees of the calling thread, with
// the GIL held or given away, host.in_new(OWN_GIL, SOURCE) runs SOURCE in a new interpreter.     embedded
// PROBE.so SCRIPT
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef size_t (*probe_fn)(char*, size_t);
static probe_fn probe;
enum { kRoom = 1 << 18 };

static PyObject* ask(PyObject* self, PyObject* args) {
  int release = 0;
  (void)self;
  if (!PyArg_ParseTuple(args, "p", &release)) return NULL;
  char* room = malloc(kRoom);
  size_t size = 0;
  if (release) {
    Py_BEGIN_ALLOW_THREADS size = probe(room, kRoom);
    Py_END_ALLOW_THREADS
  } else {
    size = probe(room, kRoom);
  }
  PyObject* out = PyUnicode_DecodeUTF8(room, (Py_ssize_t)size, "replace");
  free(room);
  return out;
}

static PyThreadState* new_interpreter(int own_gil) {
#if PY_VERSION_HEX >= 0x030C0000
  if (own_gil) {
    const PyInterpreterConfig config = {
        .allow_threads = 1, .check_multi_interp_extensions = 1, .gil = PyInterpreterConfig_OWN_GIL};
    PyThreadState* out = NULL;
    return PyStatus_Exception(Py_NewInterpreterFromConfig(&out, &config)) ? NULL : out;
  }
#endif
  (void)own_gil;
  return Py_NewInterpreter();
}

static PyObject* in_new(PyObject* self, PyObject* args) {
  int own_gil = 0;
  const char* source = NULL;
  (void)self;
  if (!PyArg_ParseTuple(args, "ps", &own_gil, &source)) return NULL;
  char* kept = strdup(source);  // of another interpreter's memory
  PyThreadState* outer = PyThreadState_Get();
  PyThreadState* inner = new_interpreter(own_gil);
  if (inner == NULL) abort();
  const int failed = PyRun_SimpleString(kept);
  free(kept);
  Py_EndInterpreter(inner);
  PyThreadState_Swap(outer);
  return PyLong_FromLong(failed);
}

static PyMethodDef methods[] = {
    {"ask", ask, METH_VARARGS, NULL}, {"in_new", in_new, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL}};
static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "host", .m_methods = methods, .m_slots = slots};
static PyObject* make_module(void) { return PyModuleDef_Init(&module); }

static void nothing_there(const char* when) {
  char room[16] = "";
  const size_t size = probe(room, sizeof room);
  if (size != 2 || room[0] != '[' || room[1] != ']')
    printf("frames %s: %.*s\n", when, (int)size, room), exit(1);
}

int main(int argc, char** argv) {
  void* library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  probe = library != NULL ? (probe_fn)dlsym(library, "probe_python") : NULL;
  if (probe == NULL) return printf("embedded PROBE.so SCRIPT: %s\n", argc == 3 ? dlerror() : ""), 2;
  nothing_there("before Py_Initialize");
  PyImport_AppendInittab("host", make_module);
  Py_Initialize();
  FILE* script = fopen(argv[2], "r");
  const int failed = script == NULL || PyRun_SimpleFile(script, argv[2]) != 0;
  if (script != NULL) fclose(script);
  if (Py_FinalizeEx() != 0) return 3;
  nothing_there("after Py_FinalizeEx");
  return failed;
}
