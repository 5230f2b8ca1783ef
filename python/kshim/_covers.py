# SPDX-License-Identifier: Apache-2.0
"""kshim.covers(): libkshim-query.so.1, by ctypes. Nothing is loaded before the first question."""
import ctypes
import functools
import os
import re
from typing import Optional, Tuple, Union

from kshim import _places

_CODES = ("unknown", "sass", "jit", "none")
_ENCODING = "utf-8"
# What each does to the driver, by the bit of kshim_question.flags.
_SWITCHES = {"CUDA_FORCE_PTX_JIT": 1, "CUDA_DISABLE_PTX_JIT": 2, "CUDA_FORCE_JIT": 4, "CUDA_DISABLE_JIT": 8}
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


class _Question(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("path", ctypes.c_char_p), ("kernel", ctypes.c_char_p), ("major", ctypes.c_int),
                ("minor", ctypes.c_int), ("driver", ctypes.c_int), ("flags", ctypes.c_uint32)]


class _Answer(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("code", ctypes.c_int), ("reason", ctypes.c_char_p), ("text", ctypes.c_char_p),
                ("modules", ctypes.c_uint64), ("sass", ctypes.c_uint64), ("jit", ctypes.c_uint64), ("lacking", ctypes.c_uint64),
                ("image", ctypes.c_char * 16), ("have", ctypes.c_char * 256)]


class NoGpu(RuntimeError):
    """There is no GPU to ask for its compute capability: name one."""


class Coverage(str):
    """"sass", "jit", "none" or "unknown". True in a condition for the first two: the kernel can be launched. `reason` is an
    identifier, `text` says it in a sentence; `image` was chosen, `have` is what there is; `modules`, `sass`, `jit` and `lacking` count
    modules. docs/query.md"""
    reason: str
    text: str
    image: str
    have: Tuple[str, ...]
    modules: int
    sass: int
    jit: int
    lacking: int

    def __new__(cls, answer: _Answer) -> "Coverage":
        self = super().__new__(cls, _CODES[answer.code])
        self.reason = answer.reason.decode(_ENCODING)
        self.text = answer.text.decode(_ENCODING)
        self.image = answer.image.decode(_ENCODING)
        self.have = tuple(answer.have.decode(_ENCODING).split())
        self.modules, self.sass, self.jit, self.lacking = answer.modules, answer.sass, answer.jit, answer.lacking
        return self

    def __bool__(self) -> bool:
        return self in ("sass", "jit")


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(_places.query_library())
    library.kshim_query.argtypes = [ctypes.POINTER(_Question), ctypes.POINTER(_Answer)]
    library.kshim_query.restype = ctypes.c_int
    return library


def _this_gpu() -> Tuple[Tuple[int, int], int]:
    """Compute capability of the GPU that this thread uses, else of the first one, and the CUDA version of the driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NoGpu(f"there is no CUDA driver here ({error}): give capability=, such as \"9.0\"") from None
    version, device, major, minor = (ctypes.c_int() for _ in range(4))
    # cuInit() is what every user of the driver calls first; again, it does nothing.
    result = driver.cuInit(0) or driver.cuDriverGetVersion(ctypes.byref(version))
    if result == 0 and driver.cuCtxGetDevice(ctypes.byref(device)) != 0:
        result = driver.cuDeviceGet(ctypes.byref(device), 0)
    for attribute, value in ((_MAJOR, major), (_MINOR, minor)):
        result = result or driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
    if result != 0:
        raise NoGpu(f"the CUDA driver names no GPU (error {result}): give capability=, such as \"9.0\"")
    return (major.value, minor.value), version.value


def _numbers(value: Union[str, Tuple[int, int]], what: str) -> Tuple[int, int]:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d{1,3})\.(\d{1,2})", value)
        if match is None:
            raise ValueError(f"{what}={value!r} is not of the form \"9.0\"")
        return int(match[1]), int(match[2])
    major, minor = value
    return int(major), int(minor)


def _c_string(value: bytes, what: str) -> bytes:
    if b"\0" in value:
        raise ValueError(f"{what} has a null character in it")  # C would read no further
    return value


def _switches() -> int:
    """As the driver of this process reads them."""
    return sum(bit for name, bit in _SWITCHES.items() if os.environ.get(name, "0").strip() not in ("", "0"))


def covers(path: Union[str, "os.PathLike[str]"], kernel: Optional[str] = None,
           capability: Union[None, str, Tuple[int, int]] = None,
           driver: Union[None, str, Tuple[int, int]] = None) -> Coverage:
    """Does a file have code of a kernel (its mangled name; None: of any) for a GPU?

    `capability` is "9.0" or (9, 0), as torch.cuda.get_device_capability() has it; None: that of this process' GPU, with its driver
    and its CUDA_FORCE_PTX_JIT and relatives. NoGpu where there is none. `driver` is a CUDA version such as "12.4"; None: that of
    this machine's driver where the capability is asked for, else the newest."""
    flags = 0
    number = 0
    if capability is None:
        (major, minor), number = _this_gpu()
        flags = _switches()
    else:
        major, minor = _numbers(capability, "capability")
    if driver is not None:
        of_driver = _numbers(driver, "driver")
        number = of_driver[0] * 1000 + of_driver[1] * 10
    question = _Question(ctypes.sizeof(_Question), _c_string(os.fsencode(path), "path"),
                         None if kernel is None else _c_string(kernel.encode(_ENCODING), "kernel"), major, minor, number, flags)
    answer = _Answer(ctypes.sizeof(_Answer))
    _library().kshim_query(ctypes.byref(question), ctypes.byref(answer))
    return Coverage(answer)
