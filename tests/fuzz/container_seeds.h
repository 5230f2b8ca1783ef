// SPDX-License-Identifier: Apache-2.0
// Seeds of fuzz_archive and fuzz_container: one of each kind, and some in others.
#pragma once
#include <string>
#include <vector>

#include "container_fixture.h"

namespace kshim::fuzz {

struct Seed {
  const char* target;
  std::string name;
  std::string bytes;
};

inline std::vector<Seed> container_seeds() {
  using namespace kshim::test;
  const Files files = {
      {"pkg/one.so", "first"}, {"two", std::string(2000, 'b')}, {"dir/", ""}, {"three", "third"}};
  const std::string gnu = "!<arch>\n" + ar_member("/", "1234") +
                          ar_member("//", "a_long_long_long_name.o/\n") + ar_member("/0", "first") +
                          ar_member("b.o/", "second");
  const std::string bsd = "!<arch>\n" + ar_member("__.SYMDEF", "1234") + ar_member("#1/4", "a.o\nfirst") +
                          ar_member("b.o", "second");
  std::vector<Seed> seeds = {{"archive", "gnu", gnu}, {"archive", "bsd", bsd}};
  const auto add = [&seeds](const char* name, std::string bytes) {
    seeds.push_back({"container", name, std::move(bytes)});
  };
  add("ar", gnu);
  add("tar", pack(Packing::tar, files));
  add("gz", pack(Packing::tar_gz, files));
  add("bz2", pack(Packing::tar_bz2, files));
  add("xz", pack(Packing::tar_xz, files));
  add("zst", pack(Packing::tar_zst, files));
  add("zip", pack(Packing::zip, files));
  add("zip_stored", pack(Packing::zip_stored, files));
  ZipMember wide = deflated("wide", std::string(500, 'w'));
  wide.zip64 = true;
  ZipMember secret = stored("secret", "0123456789abcontents");
  secret.flags = 1;
  add("zip_by_hand",
      build_zip({stored("a", "ok"), wide, secret, deflated("z", std::string(900, 'z'))}, "in front"));
  add("conda", build_zip({stored("m.json", "{}"), stored("pkg.tar.zst", pack(Packing::tar_zst, files))}));
  add("wheel_of_all", pack(Packing::zip, {{"libx.a", gnu},
                                          {"s.tar.gz", pack(Packing::tar_gz, files)},
                                          {"in.whl", pack(Packing::zip, files)}}));
  add("cut_zip", pack(Packing::zip, files).substr(0, 150));
  return seeds;
}

}  // namespace kshim::fuzz
