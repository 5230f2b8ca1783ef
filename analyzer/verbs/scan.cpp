// SPDX-License-Identifier: Apache-2.0
// Files in parallel, the largest first: the last one to be taken should be a small one.
#include "analyzer/verbs/scan.h"

#include <sys/mman.h>
#include <unistd.h>

#include <latch>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <thread>

#include "analyzer/core/memory_limit.h"
#include "analyzer/core/text.h"
#include "analyzer/input/files/container_walk.h"
#include "analyzer/verbs/expect.h"
#include "analyzer/verbs/fleet_plans.h"
#include "analyzer/verbs/pipeline.h"
#include "analyzer/verbs/scan_parts.h"

namespace kshim::verbs {
using core::Finding;
using input::ContainerLimits;
using input::ContainerVisitor;
using input::DataKind;
using input::file_kind;
using input::FileKind;
using input::ImageLayer;
using input::Input;
using input::Inputs;
using input::Member;
using input::ReadNote;

namespace {

/// Whether `part` is of `file`, and not of what was inflated.
bool is_of(Bytes file, Bytes part) {
  const auto within = [&](const std::byte* at) {
    return std::less_equal<>()(file.data(), at) && std::less_equal<>()(at, file.data() + file.size());
  };
  return within(part.data()) && within(part.data() + part.size());
}

/// Drops the mapped pages inside `passed`; they are read again on access.
void drop_pages(Bytes passed) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));  // aarch64: up to 64 KiB
  const auto begin = (reinterpret_cast<std::uintptr_t>(passed.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(passed.data() + passed.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxMapped = std::uint64_t{64} << 20;
// Linux maps what is in memory within 64 KiB of a page that is read (fault_around_bytes), at both ends.
constexpr std::uint64_t kMappedAround = std::uint64_t{128} << 10;

// Larger zips are shared by all threads.
constexpr std::uint64_t kWorthSharing = std::uint64_t{8} << 20;
// Of a file that was found in a folder and is of no known kind, this much is searched.
constexpr std::size_t kMostUnasked = std::size_t{256} << 20;
// Of an archive that was found in a folder and has no package's name, this much is read until device code is
// found: it may as well be a data set of 100 GB.
constexpr std::uint64_t kMostOfArchive = std::uint64_t{1} << 30;
constexpr std::array<std::string_view, 5> kPackages = {".whl", ".conda", ".egg", ".zip", ".tar.bz2"};
constexpr std::string_view kCondaIndex = "info/index.json";
// What threads work in. It is kept while they start: their stacks may take all there is else.
constexpr std::size_t kRoom = std::size_t{16} << 20;

// A thread may inflate at most this share of its memory, which leaves room for nested containers and results;
// but never less than that.
constexpr std::uint64_t kSharesOfThread = 4;
constexpr std::uint64_t kMinOfThread = std::uint64_t{1} << 20;

/// How far the shares of one file are.
struct Reading {
  explicit Reading(std::uint64_t size) : budget(ContainerLimits{}.of(size)) {}
  input::ByteBudget budget;  ///< of the layers of an image, and of the shares of a zip
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<unsigned> ended{0};  ///< shares
};

struct Task {
  std::size_t input = 0;
  unsigned shares = 1;
  bool first_share = true;
  std::shared_ptr<input::MemberQueue> queue = {};  ///< where there is more than one share
  std::shared_ptr<Reading> reading = {};           ///< the same for all shares
  const ImageLayer* layer = nullptr;               ///< only this, of an archive of images
};

struct Found {
  std::vector<ObjectResult> objects;
  LooseFindings loose;  ///< of images without a host file around them
  std::vector<ReadNote> notes;
  std::vector<UnreadFile> unread;
  std::vector<ScannedImage> images;
  std::map<std::string, core::PackageName> packages;  ///< by the prefix of the members that they own
  bool any_read = false;  ///< a file or member was looked into, whatever was in it
  bool named_unread = false;
  bool no_memory = false;
  LayerFound layer;  ///< of Task::layer
};

class Scanner {
 public:
  Scanner(const Inputs& inputs, const ScanRequest& options)
      : inputs_(inputs),
        options_(options),
        jobs_(options.jobs != 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency())) {}

  void run() {
    open();
    plan();
    found_.resize(tasks_.size());  // what open() noted stays
    std::vector<std::jthread> threads;
    threads.reserve(workers());
    core::allow_threads(workers());
    void* const room = ::mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    try {
      while (threads.size() < workers())
        threads.emplace_back([this, index = threads.size()] { work(index); });
    } catch (const std::exception&) {
      // A limit on threads or on memory. The stacks of those that there are may have taken all of it: half of
      // them do the work.
      most_ = std::max<std::size_t>(1, threads.size() / 2);
    }
    if (room != MAP_FAILED) ::munmap(room, kRoom);
    start_.count_down();
    if (threads.empty()) work(0);
    report_progress(threads.size());
    const bool shared_memory = threads.size() > 1;
    threads.clear();
    for (std::size_t i = 0; i < found_.size(); ++i)
      if (found_[i].no_memory && !(shared_memory && retry_alone(i))) note_no_memory(i);
  }

  std::vector<Found> take() && { return std::move(found_); }

  /// The images that were named, each with its files as the layers leave them.
  void add_images() {
    for (const auto& [index, opened] : images_)
      add_images(inputs_.files[index].shown(), opened.archive, found_.front(),
                 [&, i = index](const ImageLayer& layer) {
                   return &found_[task_of_.at({i, layer.bytes.data()})].layer;
                 });
  }

 private:
  void open() {
    found_.resize(1);  // for what is not a task's
    for (std::size_t index = 0; index < inputs_.files.size(); ++index) {
      const Input& input = inputs_.files[index];
      if (!input.named && !input.image_folder) continue;
      auto opened = open_images(input, found_.front().notes);
      if (!opened) continue;
      for (const std::string& note : opened->archive.notes())
        found_.front().notes.push_back({input.shown(), note});
      images_.emplace(index, std::move(*opened));
    }
    found_.front().named_unread = !found_.front().notes.empty();
  }

  // Detects zips by file name only; the workers open them.
  void plan() {
    std::vector<std::size_t> order(inputs_.files.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(
        order, [&](std::size_t a, std::size_t b) { return inputs_.files[a].bytes > inputs_.files[b].bytes; });
    tasks_.emplace_back();  // found_.front() is nobody's
    next_ = 1;
    for (const std::size_t index : order) {
      const Input& input = inputs_.files[index];
      total_ += input.bytes;
      if (const auto image = images_.find(index); image != images_.end()) {
        plan_layers(index, image->second.archive);
        continue;
      }
      const bool zip = input.path.extension() == ".whl" || input.path.extension() == ".zip";
      const unsigned shares = zip && input.bytes > kWorthSharing ? jobs_ : 1;
      const auto queue = shares > 1 ? std::make_shared<input::MemberQueue>() : nullptr;
      const auto reading = std::make_shared<Reading>(input.bytes);
      for (unsigned share = 0; share < shares; ++share)
        tasks_.push_back({index, shares, share == 0, queue, reading});
    }
  }

  void plan_layers(std::size_t index, const input::ImageArchive& archive) {
    std::vector<const ImageLayer*> layers;
    // One that several images have, or one image several times, is read once.
    for (const input::ContainerImage& image : archive.images())
      for (const ImageLayer& layer : image.layers)
        if (task_of_.emplace(std::pair(index, layer.bytes.data()), 0).second) layers.push_back(&layer);
    std::ranges::stable_sort(
        layers, [](const ImageLayer* a, const ImageLayer* b) { return a->bytes.size() > b->bytes.size(); });
    std::uint64_t size = 0;
    for (const ImageLayer* layer : layers) size += layer->bytes.size();
    const auto reading = std::make_shared<Reading>(size);
    for (const ImageLayer* layer : layers) {
      task_of_[{index, layer->bytes.data()}] = tasks_.size();
      tasks_.push_back({index, static_cast<unsigned>(layers.size()), true, nullptr, reading, layer});
    }
  }

  /// Scans a task's file again, alone and from the start, after it ran out of memory. False if it fails
  /// again; what the threads found of it stays then.
  bool retry_alone(std::size_t index) {
    const Task& task = tasks_[index];
    Found found;
    try {
      const Input& input = inputs_.files[task.input];
      const std::uint64_t size = task.layer != nullptr ? task.layer->bytes.size() : input.bytes;
      look_at(input, {task.input, 1, true, nullptr, std::make_shared<Reading>(size), task.layer}, found);
    } catch (const std::bad_alloc&) {
      return false;
    }
    for (std::size_t i = 1; i < tasks_.size(); ++i)
      if (tasks_[i].input == task.input && tasks_[i].layer == task.layer) found_[i] = {};
    found_[index] = std::move(found);
    return true;
  }

  void note_no_memory(std::size_t index) {
    const Input& input = inputs_.files[tasks_[index].input];
    found_[index].notes.push_back({input.shown(), core::no_memory_clause()});
    found_[index].named_unread = found_[index].named_unread || input.named;
  }

  std::size_t workers() const { return std::min<std::size_t>(jobs_, tasks_.size()); }

  void work(std::size_t thread) {
    start_.wait();
    while (thread < most_) {
      const std::size_t index = next_.fetch_add(1);
      if (index >= tasks_.size()) break;
      const Task task = std::move(tasks_[index]);
      const Input& input = inputs_.files[task.input];
      try {
        look_at(input, task, found_[index]);
      } catch (const std::bad_alloc&) {
        found_[index].no_memory = true;  // run() sees to it when the other threads have let go of theirs
      }
      // What was skipped in it is done too.
      if (task.reading->ended.fetch_add(1) + 1 == task.shares) advance(task, input.bytes);
    }
    finished_.release();
  }

  /// `bytes` more of the task's file, as far as it has them: what lies in a nested container passes twice.
  void advance(const Task& task, std::uint64_t bytes) {
    const std::uint64_t all = inputs_.files[task.input].bytes;
    const std::uint64_t before = task.reading->bytes.fetch_add(bytes);
    done_.fetch_add(std::min(before + bytes, all) - std::min(before, all), std::memory_order_relaxed);
  }

  void report_progress(std::size_t threads) {
    for (; threads != 0; --threads)
      while (!finished_.try_acquire_for(std::chrono::milliseconds(100)))
        if (options_.progress) options_.progress(done_.load(std::memory_order_relaxed), total_);
  }

  static void add_images(const std::string& name, const input::ImageArchive& archive, Found& out,
                         const std::function<const LayerFound*(const ImageLayer&)>& found) {
    const auto& images = archive.images();
    for (std::size_t number = 0; number < images.size(); ++number) {
      const input::ContainerImage& image = images[number];
      std::vector<const LayerFound*> layers = core::mapped(image.layers, found);
      MergedLayers merged = merge_layers(layers);
      std::ranges::move(merged.unread, std::back_inserter(out.unread));
      out.images.push_back(
          {name, image.name, image.platform, image.base.empty() ? merged.system : image.base, layers.size()});
      for (ObjectResult& result : merged.objects) {
        // Several images of one archive may have a file of one name.
        if (images.size() > 1)
          result.object.member =
              fmt::format("{}!{}", image.name.empty() ? fmt::format("image {}", number + 1) : image.name,
                          result.object.member);
        keep(std::move(result), out);
      }
    }
  }

  void look_at(const Input& input, const Task& task, Found& out) {
    const std::string name = input.shown();
    if (task.layer != nullptr) return look_into_layer(name, *task.layer, task, out, out.layer);
    if (!input.named && input::unpacked_name(name).size() != name.size() && input::has_plain_name(name))
      return;
    std::array<std::byte, input::kFirstBytes> buffer;
    std::string note;
    const Bytes first = input::read_first(input.path, buffer, note);
    FileKind kind = file_kind(first, name, input.bytes);
    if (input.named && kind == FileKind::plain) kind = FileKind::data;  // searched all the same
    // Only a zip has shares.
    if (!task.first_share && input::container_kind(first, name) != input::ContainerKind::zip) return;
    if (!may_hold_code(kind)) {
      if (input.named && note.empty())
        note = first.empty() ? "is empty" : "is neither a file that can hold device code nor an archive";
    } else if (!(kind == FileKind::container && !input.named && look_into_images(input, task, out))) {
      auto opened = device_code::MappedFile::open(input.path);
      if (auto* why = std::get_if<std::string>(&opened)) {
        note = *why;
      } else {
        const auto& file = std::get<device_code::MappedFile>(opened);
        look_into(name, file.bytes(), kind, input.named, task, out);
        if (file.has_shrunk()) {
          out.objects.clear();  // what was read is not what any file has
          note = "became shorter while it was read";
        }
      }
    }
    if (!note.empty()) out.notes.push_back({name, note});
    out.named_unread = out.named_unread || (input.named && !out.notes.empty());
  }

  /// An archive of images that was found in a folder: false where it is none.
  bool look_into_images(const Input& input, const Task& task, Found& out) {
    const auto opened = open_images(input, out.notes);
    if (!opened) return false;
    for (const std::string& note : opened->archive.notes()) out.notes.push_back({input.shown(), note});
    std::map<const std::byte*, LayerFound> layers;
    add_images(input.shown(), opened->archive, out, [&](const ImageLayer& layer) {
      const auto [at, added] = layers.try_emplace(layer.bytes.data());
      if (added) look_into_layer(input.shown(), layer, task, out, at->second);
      return &at->second;
    });
    return true;
  }

  void look_into_layer(const std::string& name, const ImageLayer& layer, const Task& task, Found& out,
                       LayerFound& found) {
    const std::string label = fmt::format("{}!{}", name, layer.name);
    ContainerVisitor visitor = visitor_of(label, layer.bytes, task, out);
    visitor.budget = &task.reading->budget;
    const Sink sink{[&found](ObjectResult result) { found.objects.push_back(std::move(result)); },
                    found.unread, out.any_read};
    visitor.visit = [&](const Member& member) {
      ScannedObject object;
      object.path = name;
      object.member = input::image_path(member.name);
      examine(std::move(object), member.bytes, kind_of(member), sink);
    };
    visit_layer(visitor, found);
    if (!layer.bytes.empty()) each_tar_member(layer.bytes, ContainerLimits{}, visitor);
    out.named_unread = out.named_unread || !out.notes.empty();
  }
  /// Where what is found goes.
  struct Sink {
    std::function<void(ObjectResult)> take;
    std::vector<UnreadFile>& unread;
    bool& any_read;
    bool named = false;  ///< the file, or the archive around it
  };

  static Bytes first_of(Bytes part) { return part.first(std::min(part.size(), input::kFirstBytes)); }
  static FileKind kind_of(const Member& member) {
    return file_kind(first_of(member.bytes), member.name, member.bytes.size());
  }

  /// One file or member.
  void examine(ScannedObject object, Bytes bytes, FileKind kind, const Sink& sink) const {
    if (!may_hold_code(kind)) return;
    const std::string name = object.name();
    UnreadFile here{object.path, object.member, {}, bytes.size()};
    DataKind data = kind == FileKind::data ? input::data_kind(first_of(bytes), name) : DataKind();
    if (!sink.named && data.contents == DataKind::Contents::packed) {
      here.kind = std::move(data.name);
      sink.unread.push_back(std::move(here));
      return;
    }
    auto result = scan_object(std::move(object), bytes, options_, kind);
    const bool code = result && result->has_device_code;
    if (result) sink.take(std::move(*result));
    if (kind == FileKind::device_code) {
      sink.any_read = true;
      const Bytes behind = bytes.subspan(static_cast<std::size_t>(device_code::end_of_elf(bytes)));
      here.kind = "data behind a program";
      here.bytes = behind.size();
      if (behind.size() >= input::kFirstBytes &&
          may_hold_code(file_kind(first_of(behind), {}, behind.size())))
        sink.unread.push_back(std::move(here));
      return;
    }
    const bool open = data.contents == DataKind::Contents::open;
    sink.any_read = sink.any_read || code || open;
    if (code || open) return;
    here.kind = std::move(data.name);
    sink.unread.push_back(std::move(here));
  }

  void look_into(const std::string& name, Bytes bytes, FileKind kind, bool named, const Task& task,
                 Found& out) {
    ContainerVisitor visitor = visitor_of(name, bytes, task, out);
    visitor.queue = task.queue.get();
    input::ByteBudget budget(std::min(kMostOfArchive, ContainerLimits{}.of(bytes.size())));
    if (!named) {
      const auto is_end = [&](std::string_view ending) { return name.ends_with(ending); };
      if (std::ranges::none_of(kPackages, is_end)) visitor.budget = &budget;
    }
    const Sink sink{[&](ObjectResult result) {
                      if (result.has_device_code) budget.raise(ContainerLimits{}.of(bytes.size()));
                      keep(std::move(result), out);
                    },
                    out.unread, out.any_read, named};
    visitor.wants_content = [](std::string_view member, Bytes first) {
      return is_conda_index(member) || begins_like_code(member, first);
    };
    visitor.visit = [&](const Member& member) {
      if (is_conda_index(member.name)) {
        out.packages[member.name.substr(0, member.name.size() - kCondaIndex.size())] =
            package_name(owner::package_of_conda_index(text_of(member.bytes)));
        return;
      }
      ScannedObject object;
      object.path = name;
      object.member = member.name;
      object.package = package_of(name, member.name);
      if (object.package.empty()) object.package = conda_package(out, member.name);
      examine(std::move(object), member.bytes, kind_of(member), sink);
    };
    if (kind == FileKind::container) {
      each_member(bytes, name, ContainerLimits{}, visitor);
    } else {
      // Of a file that nobody named, and that is of no known kind, the beginning.
      const bool cut = kind == FileKind::data && !named && bytes.size() > kMostUnasked;
      if (cut) bytes = bytes.first(kMostUnasked);
      ScannedObject object;
      object.path = name;
      examine(std::move(object), bytes, kind, sink);
      if (cut && !out.unread.empty())
        out.unread.back().kind += fmt::format(" of more than {} MiB", kMostUnasked >> 20);
      out.named_unread = out.named_unread || (named && !out.unread.empty() && out.objects.empty());
    }
    if (out.packages.empty()) return;
    // Those that stand before it.
    for (ObjectResult& result : out.objects) {
      if (!result.object.package.empty()) continue;
      result.object.package = conda_package(out, result.object.member);
      for (Finding& finding : result.findings) finding.package = result.object.package;
    }
  }

  static core::PackageName conda_package(const Found& found, std::string_view member) {
    for (const auto& [prefix, package] : found.packages)
      if (member.starts_with(prefix)) return package;
    return {};
  }

  // Of "a.zip!b-1.0-py3-none-any.whl!b.so" the wheel's.
  static core::PackageName package_of(std::string_view path, std::string_view member) {
    for (std::size_t end = member.rfind('!'); end != std::string_view::npos;
         end = end == 0 ? end - 1 : member.rfind('!', end - 1)) {
      const std::string_view outer = member.substr(0, end);
      const owner::Package package = owner::package_of_archive(outer.substr(outer.rfind('!') + 1));
      if (!package.name.empty()) return package_name(package);
    }
    return package_name(owner::package_of_archive(path));
  }

  static bool is_conda_index(std::string_view member) {
    if (!member.ends_with(kCondaIndex)) return false;
    const std::size_t before = member.size() - kCondaIndex.size();
    return before == 0 || member[before - 1] == '!';
  }

  static bool begins_like_code(std::string_view member, Bytes first) {
    return may_hold_code(file_kind(first, member, UINT64_MAX));
  }

  ContainerVisitor visitor_of(const std::string& name, Bytes bytes, const Task& task, Found& out) {
    ContainerVisitor visitor;
    visitor.member_memory = std::max(core::memory_limit() / 2 / jobs_ / kSharesOfThread, kMinOfThread);
    // Each share has its own mapping; of this one, about what stays mapped.
    const auto mapped = std::make_shared<std::uint64_t>(0);
    visitor.passed = [this, bytes, &task, mapped](Bytes passed) {
      if (!is_of(bytes, passed)) return;
      drop_pages(passed);
      // Pages that small members share stay, and what the kernel mapped around them.
      *mapped += kMappedAround;
      if (*mapped > kMaxMapped / jobs_) {
        *mapped = 0;
        drop_pages(bytes);
      }
      advance(task, passed.size());
    };
    // Archives whose bytes do not pass (ar); with a queue, each thread tells of its own members only.
    visitor.progress = [this, &task](std::uint64_t done) {
      const std::uint64_t before = task.reading->bytes.load();
      if (task.shares == 1 && done > before) advance(task, done - before);
    };
    visitor.wants = [](std::string_view member, std::uint64_t) { return !input::has_plain_name(member); };
    visitor.wants_content = begins_like_code;
    visitor.damaged = [&name, &out](std::string_view member, std::uint64_t offset, const std::string& what) {
      out.notes.push_back({fmt::format("{}{}{}", name, member.empty() ? "" : "!", member),
                           fmt::format("at offset {}, {}", offset, what)});
    };
    return visitor;
  }

  static void keep(std::optional<ObjectResult> result, Found& out) {
    if (!result) return;
    // No green light for device code that nobody can judge, however the file was named.
    out.named_unread = out.named_unread || (result->has_device_code && !result->notes.empty());
    std::ranges::move(result->notes, std::back_inserter(out.notes));
    if (!result->has_device_code) return;
    if (result->loose) {
      for (Finding& finding : result->findings) out.loose.add(std::move(finding));
      result->findings = {};
    }
    out.objects.push_back(std::move(*result));
  }

  const Inputs& inputs_;
  const ScanRequest& options_;
  unsigned jobs_;
  std::vector<Task> tasks_;                          ///< each taken by one thread
  std::vector<Found> found_;                         ///< by task; the first is of all
  std::map<std::size_t, input::OpenImages> images_;  ///< by input
  std::map<std::pair<std::size_t, const std::byte*>, std::size_t>
      task_of_;  ///< by input and bytes of a layer
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> most_{SIZE_MAX};  ///< threads that go on
  std::atomic<std::uint64_t> done_{0};
  std::uint64_t total_ = 0;
  std::latch start_{1};                    ///< all threads have been started
  std::counting_semaphore<> finished_{0};  ///< threads
};

void sort_findings(Scan& scan) {
  // Of several packages, the scan is about those that somebody asked for, and of these the one with most
  // device code.
  std::map<std::string, std::pair<bool, std::uint64_t>> weights;
  for (const ScannedObject& object : scan.objects) {
    auto& [requested, modules] = weights[object.package.label()];
    requested = requested || object.requested;
    modules += object.modules;
  }
  // What was asked for comes first, and then a driver that does not know the GPU: no file makes up for it.
  const auto rank = [](const Finding& finding) {
    return finding.cause == core::Cause::unmet_expectation                          ? 0
           : finding.object.empty() && finding.cause == core::Cause::driver_too_old ? 1
                                                                                    : 2;
  };
  std::ranges::stable_sort(scan.findings, std::less(), rank);
  const auto files = std::ranges::find(scan.findings, 2, rank);
  std::stable_sort(files, scan.findings.end(), [&](const Finding& a, const Finding& b) {
    const auto& of_a = weights[a.package.label()];
    const auto& of_b = weights[b.package.label()];
    return std::tie(b.severity, b.confidence, of_b, a.object) <
           std::tie(a.severity, a.confidence, of_a, b.object);
  });
}

void sort_files(Scan& scan) {
  std::ranges::sort(scan.objects, [](const ScannedObject& a, const ScannedObject& b) {
    return std::tie(a.path, a.member) < std::tie(b.path, b.member);
  });
  std::ranges::sort(scan.notes, {}, &ReadNote::text);
  const auto same = [](const ReadNote& a, const ReadNote& b) { return a.text() == b.text(); };
  scan.notes.erase(std::unique(scan.notes.begin(), scan.notes.end(), same), scan.notes.end());
}

void sort_unread(Scan& scan) {
  std::ranges::sort(scan.unread, [](const UnreadFile& a, const UnreadFile& b) {
    return std::tie(a.kind, a.path, a.member) < std::tie(b.kind, b.path, b.member);
  });
}

// A verdict of `ok` depends on them as much as a finding does.
void note_newer(Scan& scan) {
  image::Version isa;
  for (const ScannedObject& object : scan.objects)
    for (const device_code::ImageCount& image : object.images)
      if (image.candidate.kind == image::ImageKind::ptx) isa = std::max(isa, image.candidate.isa);
  scan.newer = {data::newer_cuda_than_known(scan.driver), data::newer_ptx_than_known(isa)};
  std::erase(scan.newer, "");
}

/// Files and folders.
class Files final : public Source {
 public:
  Files(Inputs inputs, const std::vector<fs::path>& paths, const ScanRequest& options, Scan& out)
      : Source(out.findings), inputs_(std::move(inputs)), paths_(paths), options_(options), out_(out) {}

 private:
  void judge() override;
  void join() override {
    excuse_files_for_other_gpus(out_);
    drop_what_newer_drivers_read(out_);
    note_code_for_newer_gpus(out_);
    merge_gpus_of_files(out_);
  }
  void sort() override { sort_findings(out_); }
  void plan() override { out_.fleet = fleet_plans(out_); }

  Inputs inputs_;
  const std::vector<fs::path>& paths_;  ///< that were named
  const ScanRequest& options_;
  Scan& out_;
};

void Files::judge() {
  Scan& out = out_;
  const std::vector<fs::path>& paths = paths_;
  const ScanRequest& options = options_;
  Inputs& inputs = inputs_;
  out.targets = options.targets;
  out.driver = options.driver;
  out.sizes = options.sizes;
  out.files = inputs.files.size();
  out.duplicates = inputs.duplicates;
  for (const Input& input : inputs.files) {
    out.bytes += input.bytes;
    if (!input.image_folder) out.file_bytes.emplace(input.shown(), input.bytes);
  }
  out.notes = std::move(inputs.notes);
  for (const fs::path& path : paths) {
    out.paths.push_back(path == "-" ? "standard input" : path.string());
    if (path == "-") continue;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    out.named_unread = out.named_unread || !fs::exists(status) || fs::is_other(status);
  }
  owner::Finder packages(options.root);
  std::mutex one_at_a_time;
  ScanRequest with_owner = options;
  with_owner.owner = [&](const std::string& path) -> Owner {
    const std::lock_guard lock(one_at_a_time);
    if (options.root != "/") {
      const fs::path below = fs::path(path).lexically_relative(options.root);
      const bool inside = !below.empty() && *below.begin() != "..";
      return {packages.in_root((inside ? below : fs::path(path).relative_path()).string())
                  .value_or(owner::Package()),
              {}};
    }
    const std::string absolute = fs::absolute(path).string();
    const auto& package = packages.of(absolute);
    if (!package) return {};
    return {*package, owner::python_environment(absolute, package->environment, package->manager == "conda")};
  };
  Scanner scanner(inputs, with_owner);
  scanner.run();
  scanner.add_images();
  LooseFindings loose;
  bool any_read = false;
  for (Found& found : std::move(scanner).take()) {
    loose.add(std::move(found.loose));
    for (ObjectResult& result : found.objects) {
      // A member of an archive has the owner of the archive.
      if (result.object.package.empty() && !result.object.member.empty()) {
        result.object.package = package_name(with_owner.owner(result.object.path).package);
        for (Finding& finding : result.findings) finding.package = result.object.package;
      }
      out.objects.push_back(std::move(result.object));
      std::ranges::move(result.findings, std::back_inserter(out.findings));
    }
    std::ranges::move(found.notes, std::back_inserter(out.notes));
    std::ranges::move(found.unread, std::back_inserter(out.unread));
    std::ranges::move(found.images, std::back_inserter(out.images));
    any_read = any_read || found.any_read;
    out.named_unread = out.named_unread || found.named_unread;
  }
  for (Finding& finding : std::move(loose).take()) out.findings.push_back(std::move(finding));
  sort_files(out);
  sort_unread(out);
  note_newer(out);
  add_old_driver_findings(out);
  // A folder without device code was read all right; what was named and cannot be read was not.
  out.nothing_readable = out.objects.empty() && ((out.notes.size() >= out.files && !out.notes.empty()) ||
                                                 (!any_read && !out.unread.empty()));
  if (options.expectation != nullptr) hold(out, *options.expectation, paths);
}

Scan scan(Inputs inputs, const std::vector<fs::path>& paths, const ScanRequest& options) {
  Scan out;
  Files files(std::move(inputs), paths, options, out);
  conclude(files);
  refuse_by_driver(out);
  return out;
}

}  // namespace

Scan scan(const std::vector<fs::path>& paths, const ScanRequest& options) {
  return scan(input::list_inputs(paths), paths, options);
}

Scan scan(Inputs inputs, const ScanRequest& options) { return scan(std::move(inputs), {}, options); }

std::vector<ReadNote> all_notes(const Scan& scan) {
  std::vector<ReadNote> out = scan.notes;
  for (auto at = scan.unread.begin(); at != scan.unread.end();) {
    const auto end =
        std::find_if(at, scan.unread.end(), [&](const UnreadFile& file) { return file.kind != at->kind; });
    const auto more = end - at - 1;
    out.push_back({at->name(), more == 0
                                   ? fmt::format("is not read: {}", at->kind)
                                   : fmt::format("and {} more are not read: each is a {}", more, at->kind)});
    at = end;
  }
  return out;
}

}  // namespace kshim::verbs
