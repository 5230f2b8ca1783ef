#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/renew_knowledge makes of measurements, without a network: which architectures of a library count, and how measured
rows replace what stood there."""
import sys
import unittest

from knowledge import tool


def images(**counts):
    """sm_90a=3, compute_120=1."""
    return [{"kind": "cubin" if name.startswith("sm") else "ptx", "arch": name, "count": count} for name, count in counts.items()]


class Series:
    """Of a project with releases 1.0 to 1.9."""
    labels = [f"1.{minor}" for minor in range(10)]

    def before(self, label):
        at = self.labels.index(label)
        return self.labels[at - 1] if at > 0 else None

    def after(self, label):
        at = self.labels.index(label)
        return self.labels[at + 1] if at + 1 < len(self.labels) else None


def row(first, last, cubin, basis="declared", **more):
    return dict(distribution="p", first=first, last=last, variant="", platform=TOOL.LINUX, cubin=cubin, ptx="", basis=basis, **more)


def spans(rows):
    return [(each["first"], each["last"], each["cubin"], each["basis"]) for each in rows]


class Served(unittest.TestCase):
    def test_an_architecture_counts_with_a_third_of_the_modules(self):
        self.assertEqual(TOOL.served(images(sm_60=1479, sm_89=1479, sm_90=330, compute_90=1479)), ("60 89", "90"))
        self.assertEqual(TOOL.served(images(sm_75=217, sm_80=308, sm_90a=600, sm_120a=317)), ("75 80 90a 120a", ""))

    def test_a_suffix_beside_its_base_is_of_kernels_for_one_gpu(self):
        self.assertEqual(TOOL.served(images(sm_90=40, sm_90a=30, sm_100=40, sm_100f=40)), ("90 100", ""))

    def test_kernels_that_each_are_a_file_count_all(self):
        self.assertEqual(TOOL.served(images(sm_100f=12000, sm_103a=40), 0), ("100f 103a", ""))

    def test_nothing(self):
        self.assertEqual(TOOL.served([]), ("", ""))


class Replaced(unittest.TestCase):
    def test_a_declared_row_keeps_what_was_not_looked_at(self):
        new = [row("1.4", "1.6", "80", "measured", date="d", wheels="1.4.0 1.6.1")]
        self.assertEqual(spans(TOOL.replaced([row("1.1", "1.8", "75")], new, Series())),
                         [("1.1", "1.3", "75", "declared"), ("1.7", "1.8", "75", "declared"), ("1.4", "1.6", "80", "measured")])

    def test_an_open_row_ends_where_it_was_looked_at(self):
        new = [row("1.4", "1.9", "80", "measured", date="d", wheels="1.4.0")]
        self.assertEqual(spans(TOOL.replaced([row("1.1", "0", "75")], new, Series()))[0], ("1.1", "1.3", "75", "declared"))

    def test_a_measured_row_goes_on_with_the_next_release(self):
        old = [row("1.1", "1.3", "80", "measured", date="a", wheels="1.1.0 1.3.0")]
        got = TOOL.replaced(old, [row("1.4", "1.4", "80", "measured", date="b", wheels="1.4.2")], Series())
        self.assertEqual([(each["first"], each["last"], each["date"], each["wheels"]) for each in got], [("1.1", "1.4", "b", "1.1.0 1.3.0 1.4.2")])

    def test_another_platform_is_left_alone(self):
        other = dict(row("1.1", "1.8", "75"), platform=TOOL.ARM)
        self.assertIn(other, TOOL.replaced([other], [row("1.1", "1.8", "80", "measured", date="d", wheels="")], Series()))


class Measured:
    """A wheel that was looked at."""
    def __init__(self, **said):
        self.said = said


def project(variant, library, pins):
    """A package whose releases 1.0, 1.1 ... pin these releases of cuDNN; None: it was not looked at."""
    out = object.__new__(TOOL.Project)
    out.row = dict(distribution="p", package="p", variant=variant, library=library)
    out.platform = TOOL.LINUX
    out.series = [(f"1.{place}", f"1.{place}.0") for place in range(len(pins))]
    out.points = {place: {"cu12": ("80", "")} for place, pin in enumerate(pins) if pin}
    out.wheels = {place: Measured(requires=[f"Requires-Dist: nvidia-cudnn-cu12=={pin}; platform_system == 'Linux'"])
                  for place, pin in enumerate(pins) if pin}
    return out


class Companions(unittest.TestCase):
    def test_releases_between_two_that_pin_the_same_are_as_these(self):
        got = project("", "", ["9.1", None, "9.1", None, "9.5"]).companions([])
        self.assertEqual([(each["first"], each["last"], each["release"]) for each in got], [("1.0", "1.2", "9.1"), ("1.4", "1.4", "9.5")])

    def test_what_was_measured_before_goes_on(self):
        old = project("", "", ["9.1", None, None, None]).companions([])
        got = project("", "", [None, None, None, "9.1"]).companions(old)
        self.assertEqual([(each["first"], each["last"]) for each in got], [("1.0", "1.3")])

    def test_a_declared_row_stays(self):
        declared = dict(distribution="p", first="1.0", last="1.3", variant="cu11", platform=TOOL.LINUX, library="cuDNN", release="8.7", basis="declared",
                        sources="s")
        self.assertIn(declared, project("", "", ["9.1"]).companions([declared]))


class Rows(unittest.TestCase):
    def test_a_row_has_the_newest_isa_of_its_releases(self):
        mine = project("", "", ["1", "1", "1"])
        mine.points = {0: {"": ("80", "90")}, 1: {"": ("80", "90")}, 2: {"": ("80", "")}}
        for place, isa in enumerate(("8.7", "9.0", "")):
            mine.wheels[place].isa = {"": isa}
        self.assertEqual([(row["first"], row["last"], row.get("isa")) for row in mine.rows()], [("1.0", "1.1", "9.0"), ("1.2", "1.2", None)])


class Builds(unittest.TestCase):
    def wheel(self, **objects):
        out = object.__new__(TOOL.Wheel)
        out.said = {"objects": [{"member": name.replace("__", "."), "images": images(**counts)} for name, counts in objects.items()]}
        return out

    def test_the_file_with_the_most_images_is_what_the_project_is(self):
        wheel = self.wheel(a__so=dict(sm_80=9), b__so=dict(sm_90=1))
        self.assertEqual(wheel.builds(dict(library=r"\.so", variant="")), {"": ("80", "")})

    def test_files_that_are_one_library_together(self):
        wheel = self.wheel(a__so=dict(sm_80=9), b__so=dict(sm_90=9))
        self.assertEqual(wheel.builds(dict(library=r"\.so", variant="", together=True)), {"": ("80 90", "")})

    def test_two_files_for_one_cuda_serve_what_either_does(self):
        wheel = self.wheel(x11__so=dict(sm_80=3), x11_old__so=dict(sm_50=3))
        self.assertEqual(wheel.builds(dict(library=r"x(\d+)(?:_old)?\.so", variant="file")), {"cu11": ("50 80", "")})


TOOL = tool()
if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False).result.wasSuccessful())
