# SPDX-License-Identifier: Apache-2.0
"""Makes the folder that golden.scan looks at: device code written byte by byte (docs/internals/image-format.md), so that no toolkit is needed
and every run has the same.

scale.fatbin     PTX for compute_80 alone
things-1.2-...   a wheel, with things/blur.fatbin: a cubin for sm_80 alone
torn.fatbin      half of one
"""
import os
import struct
import zipfile

FATBIN = 0xBA55ED50
PTX, CUBIN = 1, 2
SCALE = ".version 8.4\n.target sm_80\n.address_size 64\n.visible .entry _Z5scalePffi(.param .u64 p)\n{\n  ret;\n}\n"


def entry(kind, arch, payload, isa=(0, 0)):
    payload += bytes(-len(payload) % 8)
    return struct.pack("<HHIQIIHHIQQQQ", kind, 0x0101, 64, len(payload), 0, 0, isa[1], isa[0], arch, 0, 0x11, 0, 0) + payload


def fatbin(*entries):
    return struct.pack("<IHHQ", FATBIN, 1, 16, sum(map(len, entries))) + b"".join(entries)


def cubin(arch, kernel):
    """An ELF file with one kernel's section and symbol (without both for None), and nothing else that a loader would want."""
    has, kernel = kernel is not None, kernel or b""
    code = bytes(128)
    names = b"\0.shstrtab\0.strtab\0.symtab\0.text." + kernel + b"\0"
    strings = b"\0" + kernel + b"\0"
    symbols = bytes(24) + (struct.pack("<IBBHQQ", 1, 0x12, 0x10, 4, 0, len(code)) if has else b"")
    at = 64
    out, headers = b"", [bytes(64)]
    sections = [(b".shstrtab", 3, 0, names, 0, 0, 0), (b".strtab", 3, 0, strings, 0, 0, 0), (b".symtab", 2, 0, symbols, 2, 1, 24),
                (b".text.", 1, 6, code, 3, 16 << 24, 0)]
    for name, kind, flags, data, link, info, size in sections if has else sections[:-1]:
        data += bytes(-len(data) % 8)
        headers.append(struct.pack("<IIQQQQIIQQ", names.index(name), kind, flags, 0, at + len(out), len(data), link, info, 8, size))
        out += data
    ident = b"\x7fELF" + bytes((2, 1, 1, 0x41, 8)) + bytes(7)
    head = ident + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, at + len(out), arch << 8 | 2, 64, 0, 0, 64, len(headers), 1)
    return head + out + b"".join(headers)


def make(folder):
    with open(os.path.join(folder, "scale.fatbin"), "wb") as file:
        file.write(fatbin(entry(PTX, 80, SCALE.encode() + b"\0", (8, 4))))
    blur = fatbin(entry(CUBIN, 80, cubin(80, b"_Z4blurPKhPhii")))
    with open(os.path.join(folder, "torn.fatbin"), "wb") as file:
        file.write(blur[:len(blur) // 2])
    with zipfile.ZipFile(os.path.join(folder, "things-1.2-py3-none-any.whl"), "w") as wheel:
        for name, data in (("things/blur.fatbin", blur), ("things-1.2.dist-info/METADATA", b"Name: things\nVersion: 1.2\n")):
            wheel.writestr(zipfile.ZipInfo(name), data)
