#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Words and turns that the texts of this project do not use, each with what to write instead (CONTRIBUTING.md, "Style of texts").

Every line of every text file that git knows is read: documents, help, messages, comments and names. With arguments: those files."""
import pathlib
import re
import sys

from tree import ROOT, tracked

# (pattern, what to write instead). Words of people ("a user who ...") are fine, so `who` has the words that may stand before it.
PEOPLE = r"(?:users?|people|persons?|somebody|someone|anybody|anyone|everybody|nobody|those|one|maintainers?|readers?|newcomers?|customers?|author)"
ROWS = [
    (r"mend(?:s|ed|ing)?", "fix"),
    (r"heed(?:s|ed|ing)?", "follow, respect"),
    (r"anew", "again"),
    (r"who(?:m)?ever", "the one that, any process that"),
    (r"likewise", "also, the same"),
    (r"lest", "so that ... not"),
    (r"in vain", "without success, for nothing"),
    (r"till", "until"),
    (r"whilst|amongst|upon|thereof|hereby|albeit", "while, among, on"),
    (r"what is no(?! longer)", "what is not a ..., anything but a ..."),
    (r"(?<!one )(?<!two )(?<!three )(?<!some )(?<!none )(?<!most )(?<!all )(?<!many )(?<!each )(?<!half )(?<!neither )(?<!first )(?<!last )(?<!fourth )of which",
     "two sentences, or `whose`"),
    (r"whom?(?= [a-z])", "that, which, it; `who` is for people"),
    (r"(?<!')(?:he|his|him)(?= [a-z])", "it, its; they, their"),
    # American spelling.
    (r"\w*(?:colour|behaviour|flavour|neighbour|honour|favour)\w*", "-or"),
    (r"(?:un)?(?:re)?(?:initial|recogn|normal|optim|synchron|special|visual|virtual|util|serial|summar|organ|emphas|minim|maxim|custom|general)"
     r"is(?:e|es|ed|er|ers|ing|ation|ations)", "-ize"),
    (r"licen[c]es?d?|cancelled|cancelling|labelled|analysed?|defence|catalogues?|grey|centre[ds]?|artefacts?|judgements?|learnt|offences?|for ever|data-centres?", "American spelling"),
]
PATTERNS = [(re.compile(rf"(?<![A-Za-z0-9/-])(?:{pattern})(?![A-Za-z0-9/])", re.IGNORECASE), instead) for pattern, instead in ROWS]
AFTER_PEOPLE = re.compile(rf"\b{PEOPLE},? (?:\([^)]*\) )?$", re.IGNORECASE)

# Names that other programs read (keys of JSON) or that are not ours.
NAMES = re.compile(r'["\'.](?:mended|recognised)\b|aria-labelledby|"analyse"')

# The words of others: their messages, logs and licenses as they print them; expected outputs follow from the texts that print them.
NOT_OURS = re.compile(r"^(?:tests/golden/[^/]+/.*\.(?:txt|json|jsonl)|tests/(?:cases|explain|fuzz)/.*\.(?:json|jsonl|txt)|tests/fuzz/corpus/.*|"
                      r"tests/knowledge/.*|samples/.*/output/.*|LICENSE|tools/requirements.*|tests/lint/words\.py|.*\.(?:svg|png))$")


def findings(path: pathlib.Path):
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return
    for number, line in enumerate(lines, 1):
        line = NAMES.sub("", line)
        for pattern, instead in PATTERNS:
            for found in pattern.finditer(line):
                if found.group().lower() in ("who", "whom") and AFTER_PEOPLE.search(line[:found.start()]):
                    continue
                yield f"{path.relative_to(ROOT)}:{number}: `{found.group()}`: {instead}"


def main() -> int:
    named = [pathlib.Path(name).resolve() for name in sys.argv[1:]]
    files = [path for path in named or tracked() if not NOT_OURS.match(str(path.relative_to(ROOT)))]
    found = [each for path in files for each in findings(path)]
    print("\n".join(found), end="\n" if found else "")
    print(f"{len(files)} files read")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
