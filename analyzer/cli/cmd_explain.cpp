// SPDX-License-Identifier: Apache-2.0
// kshim explain: what a number, a name, a message or a log means.
#include <unistd.h>

#include <iostream>

#include "analyzer/cli/arguments.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/input/log/log_text.h"
#include "analyzer/render/render.h"

namespace kshim::cli {
using core::sanitize;
using core::UserError;
using render::Format;
using verbs::Explanation;
namespace exit_status = core::exit_status;

namespace {

/// How the names of logs end.
constexpr std::string_view kLogs[] = {".log", ".txt", ".out", ".err"};
constexpr std::array kExplainFormats = {Format::text, Format::json, Format::markdown};

struct ExplainOptions {
  Written written;
  std::string log;
  Assumptions assumed;
  std::vector<std::string> words;
};

Explanation read_log(const std::string& path, const verbs::ExplainRequest& options) {
  if (path == "-") {
    files::await_writer();
    return explain_log(std::cin, verbs::kStandardInput, options, {});
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw UserError(fmt::format("--log {}: {}", sanitize(path), std::strerror(errno)), exit_status::kNoInput);
  if (S_ISDIR(status.st_mode))
    throw UserError(
        fmt::format("--log {}: is a folder; for a folder of reports there is kshim analyze", sanitize(path)),
        exit_status::kNoInput);
  files::OpenFile file = files::open_to_read(path, files::Kinds::regular_or_pipe);
  if (!file) throw UserError(fmt::format("--log {}: {}", sanitize(path), file.why), exit_status::kNoInput);
  files::FileStream in(std::move(file));
  ProgressBar bar("reading the log");
  const auto total = static_cast<std::uint64_t>(status.st_size);
  Explanation out =
      explain_log(in, path, options, [&](std::uint64_t done) { bar.update(done, std::max(done, total)); });
  if (in.has_timed_out())
    print_error(fmt::format(
        "--log {}: nothing more came through this pipe for a minute; this is of what came", sanitize(path)));
  return out;
}

Explanation explain_log(const std::string& path, const verbs::ExplainRequest& options) {
  try {
    return read_log(path, options);
  } catch (const input::NotALog& what) {
    throw UserError(fmt::format("--log {}: {}", path == "-" ? "stdin" : sanitize(path), what.what()),
                    exit_status::kNoInput);
  }
}

/// `kshim explain train.log`: a file that is there, and no number. `-`, or nothing with a log in stdin:
/// stdin.
std::string named_log(const ExplainOptions& options) {
  struct stat status {};
  if (!options.log.empty()) return {};
  if (options.words.empty()) {
    const bool redirected =
        ::fstat(STDIN_FILENO, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode));
    return redirected ? "-" : "";
  }
  const std::string& word = options.words.front();
  if (options.words.size() != 1 || word.find_first_not_of("0123456789") == std::string::npos) return {};
  // A pipe is what the shell makes of <(COMMAND).
  if (word == "-" ||
      (::stat(word.c_str(), &status) == 0 && (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode))))
    return word;
  const bool path =
      core::contains(word, '/') || std::ranges::any_of(kLogs, [&](auto end) { return word.ends_with(end); });
  if (path && word.find_first_of(" :\n") == std::string::npos)
    throw UserError(fmt::format("{}: there is no such file, and it is no message", sanitize(word)),
                    exit_status::kNoInput);
  return {};
}

int explain_it(const ExplainOptions& options) {
  const std::string named = named_log(options);
  const std::string& log = named.empty() ? options.log : named;
  if (named.empty() && options.words.empty() == log.empty())
    throw UserError(log.empty() ? "a number, a name or a message is missing; or --log FILE"
                                : "either a message or --log FILE, not both");
  verbs::ExplainRequest asked;
  options.assumed.apply(asked);
  Output output(options.written.output, STDOUT_FILENO, exit_status::kMisuse);
  if (!log.empty() && output.is_same_file(log))
    throw UserError(fmt::format("--output {}: is the log to read", sanitize(log)));
  const Explanation explanation =
      log.empty() ? explain_text(core::join(options.words, " "), asked) : explain_log(log, asked);
  render::RenderOptions how = render_options(output, options.written);
  how.full = options.written.format == Format::text;
  output.write(rendered(explanation, options.written.format, how));
  // A log with an error that kshim does not know is no log without a failure.
  if (!explanation.recognized)
    return log.empty()             ? exit_status::kNoInput
           : explanation.line != 0 ? exit_status::kFindings
                                   : exit_status::kOk;
  // The meaning of a number is no failure; a log tells of one, or of none.
  const bool failed = std::ranges::any_of(
      explanation.findings, [](const auto& finding) { return finding.severity == core::Severity::error; });
  return explanation.asked == verbs::Asked::log && failed ? exit_status::kFindings : exit_status::kOk;
}

}  // namespace

std::function<int()> set_up_explain(Arguments& arguments) {
  auto options = std::make_shared<ExplainOptions>();
  arguments.add_rest("MESSAGE", options->words);
  arguments.add("--log", options->log);
  arguments.add(options->written, kExplainFormats);
  options->assumed.add_to(arguments);
  arguments.add("-v,--verbose", options->written.verbose);
  return [options] { return explain_it(*options); };
}

}  // namespace kshim::cli
