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


class Functions(unittest.TestCase):
    def test_a_function_came_with_its_first_variant(self):
        header = ("typedef CUresult (CUDAAPI *PFN_cuLinkCreate_v5050)(int);\ntypedef CUresult (CUDAAPI *PFN_cuLinkCreate_v6050)(int);\n"
                  "typedef CUresult (CUDAAPI *PFN_cuTwo_v13000_ptsz)(int);\ntypedef CUresult (CUDAAPI *PFN_cuTwo_v12080_ptsz)(int);\n"
                  "#define PFN_cuOne  PFN_cuOne_v12080\ntypedef CUresult (CUDAAPI *PFN_cuOne_v12080)(int);\n")
        self.assertEqual(TOOL.driver_functions(header), [{"cuda": "12.8", "functions": "cuOne cuTwo", "sources": "cuda_typedefs"}])


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

    def test_modules_that_each_are_for_one_gpu_count_by_their_share(self):
        self.assertEqual(TOOL.served(images(sm_52=1, sm_80=39, sm_100=599, sm_120=134, compute_80=2), 25), ("80 100 120", ""))

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

    def test_a_row_that_begins_at_a_patch_release_stays(self):
        old = [row("1.4.3", "1.4", "80", "measured", date="d", wheels="1.4.3")]
        self.assertEqual(TOOL.replaced(old, [], Series()), old)

    def test_another_platform_is_left_alone(self):
        other = dict(row("1.1", "1.8", "75"), platform=TOOL.ARM)
        self.assertIn(other, TOOL.replaced([other], [row("1.1", "1.8", "80", "measured", date="d", wheels="")], Series()))


class Measured:
    """A wheel that was looked at."""
    def __init__(self, **said):
        self.said = said


def project(pins=(), published=None, old=(), **row):
    """A package whose releases 1.0.0, 1.1.0 ... pin these releases of cuDNN; None: it was not looked at."""
    releases = published or [f"1.{place}.0" for place in range(len(pins))]
    out = TOOL.Project(dict(distribution="p", package="p", variant="", library="") | row, TOOL.LINUX, None, releases, old)
    for release, pin in zip(releases, pins, strict=False):
        if pin:
            out.points[release] = {"cu12": ("80", "", "", TOOL.TODAY)}
            out.wheels[release] = Measured(requires=[f"Requires-Dist: nvidia-cudnn-cu12=={pin}; platform_system == 'Linux'"])
    return out


class Companions(unittest.TestCase):
    def test_releases_between_two_that_pin_the_same_are_as_these(self):
        got = project(["9.1", None, "9.1", None, "9.5"]).companions([])
        self.assertEqual([(each["first"], each["last"], each["release"]) for each in got], [("1.0", "1.2", "9.1"), ("1.4", "1.4", "9.5")])

    def test_what_was_measured_before_goes_on(self):
        old = project(["9.1", None, None, None]).companions([])
        got = project([None, None, None, "9.1"]).companions(old)
        self.assertEqual([(each["first"], each["last"]) for each in got], [("1.0", "1.3")])

    def test_a_requirement_of_a_whole_series_is_no_pin(self):
        self.assertEqual(project(["9.*"]).companions([]), [])

    def test_a_declared_row_stays(self):
        declared = dict(distribution="p", first="1.0", last="1.3", variant="cu11", platform=TOOL.LINUX, library="cuDNN", release="8.7", basis="declared",
                        sources="s")
        self.assertIn(declared, project(["9.1"]).companions([declared]))


def point(cubin, ptx="", isa="", date="d"):
    return (cubin, ptx, isa, date)


def known(published, points, old=()):
    """The rows of what was looked into: {release: {variant: point}}."""
    mine = project(published=published, old=old, variant="file")
    mine.points |= points
    return [(row["variant"], row["first"], row["last"], row["cubin"], row["basis"], row["wheels"]) for row in TOOL.sort_rows(mine.rows())]


class Rows(unittest.TestCase):
    def test_a_row_has_the_newest_isa_of_its_releases(self):
        mine = project(published=["1.0.0", "1.1.0", "1.2.0"])
        mine.points = {"1.0.0": {"": point("80", "90", "8.7")}, "1.1.0": {"": point("80", "90", "9.0")}, "1.2.0": {"": point("80")}}
        self.assertEqual([(row["first"], row["last"], row.get("isa")) for row in mine.rows()], [("1.0", "1.1", "9.0"), ("1.2", "1.2", None)])

    def test_a_row_of_which_each_release_was_looked_into_is_measured(self):
        got = known(["1.0.0", "1.1.0"], {"1.0.0": {"cu12": point("80")}, "1.1.0": {"cu12": point("80")}})
        self.assertEqual(got, [("cu12", "1.0", "1.1", "80", "measured", "1.0.0 1.1.0")])

    def test_a_release_between_that_nobody_looked_into_makes_it_interpolated(self):
        got = known(["1.0.0", "1.1.0", "1.2.0"], {"1.0.0": {"cu12": point("80")}, "1.2.0": {"cu12": point("80")}})
        self.assertEqual(got, [("cu12", "1.0", "1.2", "80", "interpolated", "1.0.0 1.2.0")])

    def test_so_does_a_patch_release_at_its_end(self):
        got = known(["1.0.0", "1.0.1", "1.1.0"], {"1.0.1": {"cu12": point("80")}, "1.1.0": {"cu12": point("90")}})
        self.assertEqual(got, [("cu12", "1.0", "1.0", "80", "interpolated", "1.0.1"), ("cu12", "1.1", "1.1", "90", "measured", "1.1.0")])

    def test_a_row_begins_where_a_release_has_the_library_first(self):
        got = known(["1.0.0", "1.0.1", "1.0.2"], {"1.0.0": {"cu11": point("70")}, "1.0.1": {"cu11": point("70"), "cu12": point("80")},
                                                   "1.0.2": {"cu11": point("70"), "cu12": point("80")}})
        self.assertEqual(got, [("cu11", "1.0", "1.0", "70", "measured", "1.0.0 1.0.1 1.0.2"), ("cu12", "1.0.1", "1.0", "80", "measured", "1.0.1 1.0.2")])

    def test_a_release_that_differs_splits_a_row(self):
        got = known(["1.0.0", "1.1.0", "1.2.0"], {"1.0.0": {"cu11": point("80")}, "1.1.0": {"cu11": point("80 90")}, "1.2.0": {"cu11": point("80")}})
        self.assertEqual([row[1:4] for row in got], [("1.0", "1.0", "80"), ("1.1", "1.1", "80 90"), ("1.2", "1.2", "80")])

    def test_what_was_measured_before_goes_on(self):
        old = [row("1.0", "1.2", "80", "measured", date="a", wheels="1.0.0 1.2.0", sources="scanned_wheels") | {"variant": "cu12"}]
        got = known(["1.0.0", "1.1.0", "1.2.0"], {"1.1.0": {"cu12": point("80 90")}}, old)
        self.assertEqual([row[1:5] for row in got], [("1.0", "1.0", "80", "measured"), ("1.1", "1.1", "80 90", "measured"), ("1.2", "1.2", "80", "measured")])

    def test_a_release_without_the_library_ends_a_row_of_before(self):
        old = [row("1.0", "1.2", "80", "measured", date="a", wheels="1.0.0 1.2.0", sources="scanned_wheels") | {"variant": "cu12"}]
        got = known(["1.0.0", "1.1.0", "1.2.0"], {"1.1.0": {}}, old)
        self.assertEqual([row[1:3] for row in got], [("1.0", "1.0"), ("1.2", "1.2")])

    def test_a_release_with_post_is_named_without(self):
        got = known(["1.0.0", "1.0.1.post1", "1.0.2"], {"1.0.0": {"cu12": point("70")}, "1.0.1.post1": {"cu12": point("80")}, "1.0.2": {"cu12": point("90")}})
        self.assertEqual([row[1:3] for row in got], [("1.0", "1.0.0"), ("1.0.1", "1.0.1"), ("1.0.2", "1.0")])


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
