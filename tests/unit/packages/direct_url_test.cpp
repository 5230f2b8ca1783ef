// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "analyzer/owner/databases.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

struct Row {
  const char* what;
  const char* json;
  const char* source;
};

// The shapes are those of PEP 610 and of pip 23 and uv 0.9, as they write them.
const Row kRows[] = {
    {"editable", R"({"dir_info":{"editable":true},"url":"file:///src/vllm"})", "-e /src/vllm"},
    {"a folder", R"({"dir_info":{},"url":"file:///src/my%20ext"})", "/src/my ext"},
    {"a folder, said not to be editable", R"({"url":"file://localhost/src/x","dir_info":{"editable":false}})",
     "/src/x"},
    {"a folder below", R"({"dir_info":{},"url":"file:///src/te","subdirectory":"bindings/torch"})",
     "/src/te/bindings/torch"},
    {"a repository",
     R"({"url":"https://github.com/o/r.git","vcs_info":{"vcs":"git","requested_revision":"main","commit_id":"0123abcd"}})",
     "git+https://github.com/o/r.git@0123abcd"},
    {"a folder of a repository",
     R"({"url":"https://h.org/o/r","vcs_info":{"vcs":"git","commit_id":"01"},"subdirectory":"python/x"})",
     "git+https://h.org/o/r@01#subdirectory=python/x"},
    {"a token in the address",
     R"({"url":"https://user:ghp_secret@h.org/o/r","vcs_info":{"vcs":"git","commit_id":"01"}})",
     "git+https://h.org/o/r@01"},
    {"ssh's user", R"({"url":"ssh://git@h.org/o/r","vcs_info":{"vcs":"git","commit_id":"01"}})",
     "git+ssh://git@h.org/o/r@01"},
    {"ssh's user with a password",
     R"({"url":"ssh://git:pw@h.org/o/r","vcs_info":{"vcs":"git","commit_id":"01"}})",
     "git+ssh://h.org/o/r@01"},
    {"a wheel", R"({"archive_info":{"hash":"sha256=00"},"url":"https://h.org/x-1-py3-none-any.whl"})", ""},
    {"an editable folder that is none", R"({"dir_info":{"editable":true},"url":"https://h.org/x"})", ""},
    {"a relative folder", R"({"dir_info":{},"url":"file://../x"})", ""},
    {"half an escape", R"({"dir_info":{},"url":"file:///src/x%4"})", ""},
    {"no escape", R"({"dir_info":{},"url":"file:///src/x%zz"})", ""},
    {"a byte that ends strings", R"({"dir_info":{},"url":"file:///src/x%00y"})", ""},
    {"editable, but no boolean", R"({"dir_info":{"editable":"yes"},"url":"file:///src/x"})", "/src/x"},
    {"a shell's words in the address",
     R"({"url":"https://h.org/o/r;rm -rf x","vcs_info":{"vcs":"git","commit_id":"01"}})", ""},
    {"a shell's words in the commit",
     R"({"url":"https://h.org/o/r","vcs_info":{"vcs":"git","commit_id":"`id`"}})", ""},
    {"a shell's words below",
     R"({"url":"https://h.org/o/r","vcs_info":{"vcs":"git","commit_id":"01"},"subdirectory":"a&b"})", ""},
    {"a repository on this machine", R"({"url":"file:///src/x","vcs_info":{"vcs":"git","commit_id":"01"}})",
     "git+file:///src/x@01"},
    {"one that is nowhere", R"({"url":"file://src/x","vcs_info":{"vcs":"git","commit_id":"01"}})", ""},
    {"a folder with a slash", R"({"dir_info":{"editable":true},"url":"file:///src/x/"})", "-e /src/x"},
    {"a line's end in it", R"({"dir_info":{},"url":"file:///src/x%0Ay"})", ""},
    {"an option as an address",
     R"({"url":"--index-url=https://h.org","vcs_info":{"vcs":"git","commit_id":"01"}})", ""},
    {"a host alone", R"({"url":"https://h.org/","vcs_info":{"vcs":"git","commit_id":"01"}})", ""},
    {"no host", R"({"url":"https:///o/r","vcs_info":{"vcs":"git","commit_id":"01"}})", ""},
    {"nobody's control", R"({"url":"https://h.org/o/r","vcs_info":{"vcs":"cvs","commit_id":"01"}})", ""},
    {"no commit", R"({"url":"https://h.org/o/r","vcs_info":{"vcs":"git"}})", ""},
    {"a list", R"([1,2])", ""},
    {"no address", R"({"dir_info":{}})", ""},
    {"an address that is a number", R"({"dir_info":{},"url":5})", ""},
    {"dir_info that is a word", R"({"dir_info":"x","url":"file:///src/x"})", "/src/x"},
    {"no JSON", "{", ""},
    {"nothing", "", ""},
};

TEST(DirectUrl, EveryRow) {
  for (const Row& row : kRows) EXPECT_EQ(source_of_direct_url(row.json), row.source) << row.what;
}
TEST(DirectUrl, AFolderCutOffAnywhereIsNoneOrItself) {
  const std::string whole = R"({"dir_info":{"editable":true},"url":"file:///src/vllm"})";
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(source_of_direct_url(whole.substr(0, length)), "") << length;
}
TEST(DirectUrl, WhatItGivesIsASource) {
  for (const Row& row : kRows) EXPECT_EQ(is_source(row.source), *row.source != '\0') << row.what;
  for (const char* text : {"-r https://h.org/x", "--index-url=https://h.org", "-e git+https://h.org/o/r@01",
                           "-e x", "x", "git+https://h.org/o/r", "git+https://h.org/o r@01",
                           "git@+https://h.org/o/r", "git+https://u:p@h.org/o/r@01", "https://h.org/x.whl"})
    EXPECT_FALSE(is_source(text)) << text;
}
TEST(DirectUrl, TheFolderOfASource) {
  EXPECT_EQ(folder_of_source("-e /src/x"), "/src/x");
  EXPECT_EQ(folder_of_source("/src/x"), "/src/x");
  EXPECT_EQ(folder_of_source("git+https://h.org/o/r@01"), "");
  EXPECT_EQ(folder_of_source(""), "");
}

}  // namespace
}  // namespace kshim::test
