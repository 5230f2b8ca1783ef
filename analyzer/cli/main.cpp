// SPDX-License-Identifier: Apache-2.0
namespace kshim::cli {
int main(int argc, char** argv);  // dispatch.cpp
}

int main(int argc, char** argv) { return kshim::cli::main(argc, argv); }
