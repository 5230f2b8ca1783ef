// SPDX-License-Identifier: Apache-2.0
// Redacts each line of the standard input: redact_lines text|identifier
#include <iostream>
#include <string>
#include <string_view>

#include "kshim/report/redact.h"

int main(int argc, char** argv) {
  using kshim::report::Content;
  if (argc != 2) return 2;
  const std::string_view kind(argv[1]);
  if (kind != "text" && kind != "identifier") return 2;
  for (std::string line; std::getline(std::cin, line);) {
    kshim::report::RedactedPieces pieces(line, kind == "text" ? Content::text : Content::identifier);
    for (std::string_view piece; pieces.next(piece);) std::cout << piece;
    std::cout << '\n';
  }
}
