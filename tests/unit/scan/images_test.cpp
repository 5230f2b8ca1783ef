// SPDX-License-Identifier: Apache-2.0
// Images of containers as docker, podman, skopeo and buildah write them: every layout, every compression, and
// what the layers make of each other.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "analyzer/input/files/image_archive.h"
#include "analyzer/verbs/scan.h"
#include "container_fixture.h"
#include "container_probe.h"
#include "fatbin_builder.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::string fatbin(unsigned sm) {
  const auto bytes = FatbinBuilder{}.ptx(arch_of(sm), {7, 0}, ".version").build();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::string hash(char digit) { return std::string(64, digit); }
std::string digest(char digit) { return "sha256:" + hash(digit); }
std::string blob(char digit) { return "blobs/sha256/" + hash(digit); }

const Files kLower = {
    {"opt/", ""},
    {"opt/gone.fatbin", fatbin(70)},
    {"opt/kept.fatbin", fatbin(75)},
    {"opt/old/a.fatbin", fatbin(80)},
    {"opt/opaque/b.fatbin", fatbin(86)},
    {"opt/replaced.fatbin", fatbin(89)},
    {"opt/into_folder", fatbin(90)},
    {"usr/lib/python3/site-packages/demo/c.fatbin", fatbin(75)},
    {"usr/lib/python3/site-packages/demo-0.9.dist-info/RECORD", "demo/c.fatbin,,\n"},
    {"usr/lib/python3/site-packages/demo-0.9.dist-info/METADATA", "Name: demo\nVersion: 0.9\n"}};
const Files kUpper = {
    {"./opt/.wh.gone.fatbin", ""},
    {"./opt/.wh.old", ""},
    {"./opt/opaque/.wh..wh..opq", ""},
    {"./opt/opaque/new.fatbin", fatbin(100)},
    {"./opt/replaced.fatbin", "text, no device code any more"},
    {"./opt/into_folder/d.fatbin", fatbin(120)},
    {"usr/lib/python3/site-packages/.wh.demo-0.9.dist-info", ""},
    {"usr/lib/python3/site-packages/demo-1.0.dist-info/RECORD", "demo/c.fatbin,,\n"},
    {"usr/lib/python3/site-packages/demo-1.0.dist-info/METADATA", "Name: demo\nVersion: 1.0\n"}};

Files oci(Packing packing) {
  const std::string config = R"({"os":"linux","architecture":"arm64","variant":"v8"})";
  const std::string manifest = fmt::format(
      R"({{"config":{{"digest":"{}"}},"layers":[{{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"{}"}},{{"digest":"{}"}}]}})",
      digest('c'), digest('1'), digest('2'));
  const std::string index = fmt::format(
      R"({{"schemaVersion":2,"manifests":[{{"digest":"{}","annotations":{{"org.opencontainers.image.ref.name":"demo:1"}}}},)"
      R"({{"digest":"{}","annotations":{{"vnd.docker.reference.type":"attestation-manifest"}}}}]}})",
      digest('a'), digest('b'));
  return {{"blobs/", ""},
          {"blobs/sha256/", ""},
          {blob('1'), pack(packing, kLower)},
          {blob('2'), pack(packing, kUpper)},
          {blob('a'), manifest},
          {blob('c'), config},
          {"index.json", index},
          {"oci-layout", R"({"imageLayoutVersion":"1.0.0"})"}};
}

Files docker_archive(Packing packing) {
  const std::string config = hash('c') + ".json";
  return {{hash('1') + ".tar", pack(packing, kLower)},
          {hash('2') + ".tar", pack(packing, kUpper)},
          {config, R"({"os":"linux","architecture":"amd64"})"},
          {"manifest.json",
           fmt::format(R"([{{"Config":"{}","RepoTags":["demo:1"],"Layers":["{}.tar","{}.tar"]}}])", config,
                       hash('1'), hash('2'))}};
}

class Images : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "kshim-image-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  void TearDown() override { fs::remove_all(path_); }
  fs::path write(const fs::path& name, const std::string& bytes) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }
  fs::path unpack(const fs::path& name, const Files& files) const {
    for (const auto& [file, bytes] : files)
      if (!file.ends_with('/')) write(name / file, bytes);
    return path_ / name;
  }
  static Scan scan_of(const fs::path& path) {
    return scan({path}, {.targets = {}, .driver = {}, .jobs = 2, .owner = {}, .progress = {}});
  }
  fs::path path_;
};

std::vector<std::string> files_of(const Scan& scan) {
  std::vector<std::string> out;
  for (const ScannedObject& object : scan.objects)
    out.push_back(object.member + (object.package.empty() ? "" : " of " + object.package.label()));
  return out;
}

void expect_demo(const Scan& scan, const char* platform) {
  EXPECT_THAT(files_of(scan),
              UnorderedElementsAre("opt/into_folder/d.fatbin", "opt/kept.fatbin", "opt/opaque/new.fatbin",
                                   "usr/lib/python3/site-packages/demo/c.fatbin of demo 1.0"));
  ASSERT_THAT(scan.images, SizeIs(1));
  EXPECT_EQ(scan.images[0].name, "demo:1");
  EXPECT_EQ(scan.images[0].platform, platform);
  EXPECT_EQ(scan.images[0].layers, 2U);
  EXPECT_THAT(scan.notes, IsEmpty());
  EXPECT_FALSE(scan.named_unread);
}

constexpr Packing kLayers[] = {Packing::tar, Packing::tar_gz, Packing::tar_zst};

TEST_F(Images, OfAnOciLayoutInATar) {
  for (const Packing packing : kLayers)
    expect_demo(scan_of(write("image", pack(Packing::tar, oci(packing)))), "linux/arm64/v8");
}

TEST_F(Images, OfAnOciLayoutInAFolder) {
  for (const Packing packing : kLayers) {
    const fs::path folder = unpack("layout", oci(packing));
    expect_demo(scan_of(folder), "linux/arm64/v8");
    expect_demo(scan_of(path_), "linux/arm64/v8");
    fs::remove_all(folder);
  }
}

TEST_F(Images, OfADockerArchive) {
  for (const Packing packing : kLayers) {
    expect_demo(scan_of(write("image", pack(Packing::tar, docker_archive(packing)))), "linux/amd64");
  }
}

TEST_F(Images, OfAnArchiveThatIsCompressedAsAWhole) {
  for (const Packing packing : {Packing::tar_gz, Packing::tar_zst, Packing::tar_xz}) {
    expect_demo(scan_of(write("image", pack(packing, oci(Packing::tar)))), "linux/arm64/v8");
    expect_demo(scan_of(write("image", pack(packing, docker_archive(Packing::tar)))), "linux/amd64");
  }
}

TEST_F(Images, ThatLackALayerAreNotWhole) {
  for (Files files : {oci(Packing::tar_gz), docker_archive(Packing::tar_gz)}) {
    std::erase_if(files, [](const File& file) { return file.first.find(hash('1')) != std::string::npos; });
    const Scan got = scan_of(write("image", pack(Packing::tar, files)));
    EXPECT_THAT(files_of(got), UnorderedElementsAre("opt/into_folder/d.fatbin", "opt/opaque/new.fatbin"));
    ASSERT_THAT(got.notes, SizeIs(1));
    EXPECT_THAT(got.notes[0].what, HasSubstr(hash('1')));
    EXPECT_TRUE(got.named_unread);
  }
}

TEST_F(Images, ThatAreDamagedAreNotWhole) {
  Files files = oci(Packing::tar_gz);
  files[2].second.resize(files[2].second.size() / 2);
  const Scan got = scan_of(write("image", pack(Packing::tar, files)));
  EXPECT_THAT(got.notes, ::testing::Not(IsEmpty()));
  EXPECT_TRUE(got.named_unread);
  files = oci(Packing::tar_gz);
  files[6].second = "no JSON";
  EXPECT_THAT(scan_of(write("other", pack(Packing::tar, files))).images, IsEmpty());
}

// shows: an image whose index names itself, whose entries name one large blob again and again
TEST_F(Images, ThatNameABlobAgainAndAgainEnd) {
  const auto repeat = [](const std::string& row, std::size_t times) {
    std::string out = row;
    for (std::size_t i = 1; i < times; ++i) out += "," + row;
    return out;
  };
  const std::string index =
      fmt::format(R"({{"manifests":[{}]}})", repeat(fmt::format(R"({{"digest":"{}"}})", digest('a')), 1000));
  const std::string large = R"({"os":"linux","x":")" + std::string(7U << 20U, 'x') + "\"}";
  const std::string entries = repeat(fmt::format(R"({{"Config":"{}","Layers":["x"]}})", hash('c')), 20'000);
  for (const Files& files : {Files{{"oci-layout", "{}"}, {"index.json", index}, {blob('a'), index}},
                             Files{{hash('c'), large}, {"manifest.json", "[" + entries + "]"}}}) {
    const std::string image = pack(Packing::tar, files);
    EXPECT_TRUE(survives(1024, 60, [&] {
      const Scan got = scan_of(write("image", image));
      EXPECT_THAT(mapped(got.notes, &ReadNote::what), ::testing::Contains(HasSubstr("than are read")));
      EXPECT_TRUE(got.named_unread);
    }));
  }
}

TEST_F(Images, ReadALayerOnce) {
  Files files = docker_archive(Packing::tar_gz);
  std::string& manifest = files.back().second;
  std::string many;
  for (int i = 0; i < 1000; ++i) many += fmt::format(R"("{}.tar",)", hash('1'));
  manifest.insert(manifest.find("\"Layers\":[") + 10, many);
  // Each further reading would say so again.
  files[0].second.resize(files[0].second.size() - 8);
  const Scan got = scan_of(write("image", pack(Packing::tar, files)));
  ASSERT_THAT(got.images, SizeIs(1));
  EXPECT_EQ(got.images[0].layers, 1002U);
  EXPECT_THAT(got.notes, SizeIs(1));
}

TEST_F(Images, OtherTarsAreTars) {
  const Files files = {{"lib/a.fatbin", fatbin(80)}, {"manifest.json", "{}"}};
  for (const Packing packing : {Packing::tar, Packing::tar_gz}) {
    const Scan got = scan_of(write("no_ending", pack(packing, files)));
    EXPECT_THAT(files_of(got), ElementsAre("lib/a.fatbin"));
    EXPECT_THAT(got.images, IsEmpty());
  }
}

TEST_F(Images, AnEmptyFolderIsNothingToRead) {
  fs::create_directory(path_ / "empty");
  const Scan got = scan_of(path_ / "empty");
  EXPECT_THAT(got.notes, SizeIs(1));
  EXPECT_TRUE(got.nothing_readable);
}

TEST(ImagePath, StaysInTheImage) {
  EXPECT_EQ(image_path("./usr//lib/a.so"), "usr/lib/a.so");
  EXPECT_EQ(image_path("/a/b/"), "a/b");
  EXPECT_EQ(image_path("../../etc/passwd"), "etc/passwd");
  EXPECT_EQ(image_path("a/../../b"), "b");
  EXPECT_EQ(image_path("."), "");
}

TEST(LayerNames, HideWhatLiesBelow) {
  LayerNames names;
  names.add("a/file", false);
  names.add("a/folder", true);
  names.add("a/.wh.gone", false);
  names.add("b/.wh..wh..opq", false);
  EXPECT_TRUE(names.hides("a/file"));
  EXPECT_TRUE(names.hides("a/file/x")) << "a file in the place of a folder";
  EXPECT_TRUE(names.hides("a/folder")) << "a folder in the place of a file";
  EXPECT_FALSE(names.hides("a/folder/x"));
  EXPECT_TRUE(names.hides("a/gone"));
  EXPECT_TRUE(names.hides("a/gone/x/y"));
  EXPECT_FALSE(names.hides("a/goner"));
  EXPECT_TRUE(names.hides("b/x"));
  EXPECT_FALSE(names.hides("bb/x"));
}

}  // namespace
}  // namespace kshim::test
