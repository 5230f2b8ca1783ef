# SPDX-License-Identifier: Apache-2.0
"""Which loaded files have no CUDA code for this GPU?  One file to copy into your project; it needs nothing else.

    import kshim_guard
    for file in kshim_guard.uncovered((12, 0)):           # torch.cuda.get_device_capability()
        warnings.warn(f"{file.path} has no code for this GPU, only {' '.join(file.have)}")

`uncovered(capability)` reads the files that this process has mapped, or those that you name. It lists a file if it has
kernels and none of its modules runs on the GPU. It opens no driver, starts no process and writes nothing.
`python kshim_guard.py 12.0 [FILE...]` does the same and exits with 1 if a file is listed.

The rules are those of `kshim scan` (docs/compatibility.md in kshim), which also names kernels, packages and fixes. Reads
x86-64 and aarch64 ELF files, with Python 3.8 or newer.
"""
import mmap
import struct
import sys
from collections import namedtuple

__version__ = "1.0"

File = namedtuple("File", "path have")  # have: ("sm_80", "compute_90")
Image = namedtuple("Image", "kind number suffix isa offset stored packed compression clear")  # number: 86 of sm_86

PTX, CUBIN, LTO_IR, TILE_IR = 1, 2, 8, 64
NAMES = {PTX: "compute_", CUBIN: "sm_", LTO_IR: "lto_"}
MAGIC = b"\x50\xed\x55\xba\x01\x00\x10\x00"
TEGRA = {32, 53, 62, 72, 87}  # these run only what was built for exactly them
THOR = {101, 110}  # one chip: 10.1 up to CUDA 12.9, 11.0 since CUDA 13
FAMILIES = ((100, 103, 107), (110, 101), (120, 121))
# PTX ISA of a driver's CUDA version where it is not 8.minor or 9.minor; PTX that is newer is refused (error 222).
ISA_OF_CUDA = {(12, 6): (8, 5), (12, 7): (8, 6), (12, 8): (8, 7), (12, 9): (8, 8)}
NO_DATA = (".text", ".rela", ".dyn", ".gnu", ".eh_", ".gcc_", ".hash", ".init", ".fini", ".plt", ".note", ".nvFatBin")
ENTRY = struct.Struct("<HHIQIIHHIQQQQ")  # the header of an image in a fatbin
KERNEL_LIMIT = 1 << 16  # so much of an unpacked image is searched for a kernel
SMALLEST_KERNEL = (100, 2560, 4096)  # bytes of PTX, cubins, cubins from 10.0 on: less has none (CUDA 13.0, 2026-11-28)


def uncovered(capability, files=None, driver=None):
    """The files that have kernels, but none for a GPU of this compute capability.

    capability: "8.6", (8, 6) or "sm_86". files: paths; None for what this process has mapped.
    driver: the CUDA version of the driver, such as "12.4" or (12, 4), where it counts for PTX; None for the newest.
    Files that cannot be read, and those without kernels, are not listed.
    """
    device, isa = _number(capability), _isa(driver)
    found = []
    for path in mapped() if files is None else files:
        try:
            with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
                result = _judge(data, device, isa)
        except (OSError, ValueError, struct.error):
            continue
        if result:
            found.append(File(path, result))
    return found


def mapped():
    """The files whose code this process has mapped, without those that are deleted."""
    paths = {}
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/"):
                paths[fields[5].rstrip("\n")] = None
    return [path for path in paths if not path.endswith(" (deleted)")]


def runs(image, device, isa=None):
    """Does this image run on the GPU, or can the driver compile it?"""
    number, suffix = image.number, image.suffix
    if image.kind not in (PTX, CUBIN):
        return False
    if image.kind == PTX and isa and image.isa > isa:
        return False
    if number in THOR and device in THOR:
        return True
    if suffix == "a":
        return number == device
    if suffix == "f":
        return any(number in family and device in family and number <= device for family in FAMILIES)
    if image.kind == PTX:
        return number <= device
    if number // 10 != device // 10 or number > device:
        return False
    return number == device or not {number, device} & (TEGRA | THOR)


def _number(capability):
    if isinstance(capability, str):
        text = capability.strip().lower().replace("sm_", "")
        major, _, minor = text.partition(".") if "." in text else (text[:-1], "", text[-1:])
        capability = (major, minor)
    major, minor = (int(part) for part in capability[:2])
    return 10 * major + minor


def _isa(driver):
    if driver is None:
        return None
    parts = driver.split(".") if isinstance(driver, str) else driver
    major, minor = (int(part) for part in tuple(parts)[:2])
    return ISA_OF_CUDA.get((major, minor), (major - 4, minor))


def _judge(data, device, isa):
    """What the file has instead, or None if something runs or there is no kernel."""
    sections = _sections(data)
    if not {".nv_fatbin", "__nv_relfatbin", ".nvFatBinSegment"} & {name for name, _, _ in sections}:
        return None
    lacking = []
    registered = None
    for at, module in _modules(data, sections):
        kinds = {image.kind for image in module}
        if not kinds & {PTX, CUBIN}:
            continue
        if LTO_IR in kinds:  # a fragment that the library links by itself, if others are registered with the runtime
            registered = _registered(data) if registered is None else registered
            if registered and at not in registered:
                continue
        if not any(runs(image, device, isa) for image in module):
            lacking.append(module)
        elif _has_kernels(data, module):
            return None
    have = set()
    for module in lacking:
        archs = {(image.kind == PTX, image.number, image.suffix, image.kind) for image in module if image.kind in NAMES}
        if not archs <= have and _has_kernels(data, module):
            have |= archs
    if not have:
        return None
    parts = [part for name, begin, end in sections if name == "__nv_relfatbin" for _, part in _walk(data, begin, end)]
    if _links(parts, device, isa) and any(_has_kernels(data, part) for part in parts):
        return None
    return tuple(f"{NAMES[kind]}{number}{suffix}" for _, number, suffix, kind in sorted(have))


def _sections(data):
    """(name, begin, end) of each section with bytes in the file; none where this is no 64-bit little-endian ELF file."""
    return [(name, begin, begin + size) for name, _, begin, size in _table(data)]


def _table(data):
    if data[:6] != b"\x7fELF\x02\x01":
        return
    table, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    if not table or size != 64:
        return
    rows = [struct.unpack_from("<IIQQQQ", data, table + size * index) for index in range(count)]
    text = rows[names][4] if names < count else 0
    for name, kind, flags, address, begin, length in rows:
        if kind not in (0, 8) and flags & 2:  # SHT_NULL, SHT_NOBITS; SHF_ALLOC
            end = data.find(b"\0", text + name)
            yield data[text + name:end].decode("latin-1"), address, begin, max(min(length, len(data) - begin), 0)


def _registered(data):
    """The offsets of the fatbins that the CUDA runtime registers: each wrapper in .nvFatBinSegment points to one."""
    table = list(_table(data))
    targets = set()
    for name, address, begin, size in table:
        if name == ".nvFatBinSegment":
            targets.update(struct.unpack_from("<Q", data, begin + at + 8)[0] for at in range(0, size - 23, 24))
            relocations = [row for row in table if row[0] == ".rela.dyn"]
            for _, _, start, length in relocations:
                for place, _, target in struct.iter_unpack("<QQQ", data[start:start + length // 24 * 24]):
                    if address <= place < address + size:
                        targets.add(target)
    return {target - address + begin for target in targets for name, address, begin, size in table
            if name == ".nv_fatbin" and address <= target < address + size}


def _modules(data, sections):
    """(offset, images) of each module: those of the section for them first, then those elsewhere in the file's data."""
    for name, begin, end in sections:
        if name == ".nv_fatbin":
            yield from _walk(data, begin, end)
    for name, begin, end in sections:
        if name not in (".nv_fatbin", "__nv_relfatbin") and not name.startswith(NO_DATA):
            yield from _walk(data, begin, end)


def _walk(data, begin, end):
    at = data.find(MAGIC, begin, end)
    while at >= 0:
        module, following = _module(data, at, end)
        yield at, module
        following = max(following + 7 & ~7, at + 8)
        at = following if data[following:following + 8] == MAGIC else data.find(MAGIC, following, end)


def _module(data, at, end):
    """The images of a fatbin, and where it ends."""
    length, = struct.unpack_from("<Q", data, at + 8)
    stop = min(at + 16 + length, end)
    images, at = [], at + 16
    while at + 64 <= stop:
        kind, _, header, stored, packed, _, minor, major, number, _, flags, _, clear = ENTRY.unpack_from(data, at)
        if header < 64 or at + header + stored > stop:
            break
        suffix = "a" if flags & 0x100000 else "f" if flags & 0x200000 else ""
        compression = "lz4" if flags & 0x2000 else "zstd" if flags & 0x8000 else ""
        images.append(Image(kind, number, suffix, (major, minor), at + header, stored, packed, compression, clear))
        at += header + stored
    return images, stop


def _links(parts, device, isa):
    """Can the driver link relocatable parts for this GPU: has each of them something, and one of them PTX?"""
    parts = [part for part in parts if part]
    levels = sorted({image.number for part in parts for image in part if image.kind == PTX and image.number <= device})
    for level in levels:
        fits = [[image for image in part if runs(image, level, isa)] for part in parts]
        if all(fits) and any(image.kind == PTX for part in fits for image in part):
            return True
    return False


def _has_kernels(data, module):
    """Has an image of this module a kernel? nvcc puts a module without kernels into nearly every program."""
    images = sorted((image for image in module if image.kind in (PTX, CUBIN)), key=lambda image: image.stored)
    return any(_has_kernel(data, image) for image in images)


def _has_kernel(data, image):
    end = image.offset + (image.packed or image.stored)
    if not image.compression:
        clear = data[image.offset:end]
    elif image.compression == "lz4":
        clear = _unpack_lz4(data[image.offset:end])
    else:
        clear = _unpack_zstd(data[image.offset:end])
        if clear is None:
            return image.clear >= SMALLEST_KERNEL[0 if image.kind == PTX else 1 + (image.number >= 100)]
    mark = b".entry" if image.kind == PTX else b".nv.constant0."
    # A cubin's section names lie in its first bytes; what is longer than the limit has kernels.
    return mark in clear or len(clear) >= KERNEL_LIMIT


def _unpack_lz4(packed):
    """The first KERNEL_LIMIT bytes of an LZ4 block (lz4_Block_format.md)."""
    out, at = bytearray(), 0
    while at < len(packed) and len(out) < KERNEL_LIMIT:
        token = packed[at]
        length, at = _length(packed, at + 1, token >> 4)
        out += packed[at:at + length]
        at += length
        if at + 2 > len(packed):
            break
        distance = packed[at] | packed[at + 1] << 8
        length, at = _length(packed, at + 2, token & 15)
        length += 4
        if not 0 < distance <= len(out):
            break
        start = len(out) - distance
        while length > 0:  # a match may overlap what it writes
            piece = out[start:start + length]
            out += piece
            start += len(piece)
            length -= len(piece)
    return bytes(out)


def _length(packed, at, length):
    if length == 15:
        while at < len(packed):
            byte = packed[at]
            length, at = length + byte, at + 1
            if byte != 255:
                break
    return length, at


def _unpack_zstd(packed):
    try:
        from compression.zstd import ZstdDecompressor  # Python 3.14
    except ImportError:
        try:
            from zstandard import ZstdDecompressor as Streams
        except ImportError:
            return None
        return Streams().decompressobj().decompress(packed)[:KERNEL_LIMIT]
    return ZstdDecompressor().decompress(packed, max_length=KERNEL_LIMIT)


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        print("usage: kshim_guard.py CAPABILITY [FILE...]", file=sys.stderr)
        return 2
    found = uncovered(arguments[0], arguments[1:] or None)
    for file in found:
        print(f"{file.path}: no code for {arguments[0]}, only {' '.join(file.have)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
