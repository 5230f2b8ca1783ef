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

#include "analyzer/advise/advice.h"
#include "analyzer/core/memory_limit.h"
#include "analyzer/core/text.h"
#include "analyzer/input/files/container_walk.h"
#include "analyzer/verbs/fleet_plans.h"
#include "analyzer/verbs/scan_parts.h"

namespace kshim::verbs {
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
// What threads work in. It is kept while they start: their stacks may take all there is else.
constexpr std::size_t kRoom = std::size_t{16} << 20;

// A thread may inflate at most this share of its memory, which leaves room for nested containers and results;
// but never less than that.
constexpr std::uint64_t kSharesOfThread = 4;
constexpr std::uint64_t kMinOfThread = std::uint64_t{1} << 20;

/// How far the shares of one file are.
struct Reading {
  ByteBudget budget{ContainerLimits{}.total_bytes};  ///< of the layers of an image
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<unsigned> ended{0};  ///< shares
};

struct Task {
  std::size_t input = 0;
  unsigned shares = 1;
  std::shared_ptr<MemberQueue> queue = {};  ///< where there is more than one share
  std::shared_ptr<Reading> reading = {};    ///< the same for all shares
  const ImageLayer* layer = nullptr;        ///< only this, of an archive of images
};

struct Found {
  std::vector<ObjectResult> objects;
  LooseFindings loose;  ///< of images without a host file around them
  std::vector<ReadNote> notes;
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
    allow_threads(workers());
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

  /// The images, each with its files as the layers leave them.
  void add_images(Scan& scan) {
    for (const auto& [index, opened] : images_) {
      const Input& input = inputs_.files[index];
      const auto& images = opened.archive.images();
      for (std::size_t number = 0; number < images.size(); ++number) {
        const ContainerImage& image = images[number];
        std::vector<const LayerFound*> layers;
        for (const ImageLayer& layer : image.layers)
          layers.push_back(&found_[task_of_.at({index, layer.bytes.data()})].layer);
        MergedLayers merged = merge_layers(layers);
        scan.images.push_back({input.shown(), image.name, image.platform,
                               image.base.empty() ? merged.system : image.base, image.layers.size()});
        for (ObjectResult& result : merged.objects) {
          // Several images of one archive may have a file of one name.
          if (images.size() > 1)
            result.object.member =
                fmt::format("{}!{}", image.name.empty() ? fmt::format("image {}", number + 1) : image.name,
                            result.object.member);
          keep(std::move(result), found_.front());
        }
      }
    }
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
      const auto queue = shares > 1 ? std::make_shared<MemberQueue>() : nullptr;
      const auto reading = std::make_shared<Reading>();
      for (unsigned share = 0; share < shares; ++share) tasks_.push_back({index, shares, queue, reading});
    }
  }

  void plan_layers(std::size_t index, const ImageArchive& archive) {
    std::vector<const ImageLayer*> layers;
    // One that several images have, or one image several times, is read once.
    for (const ContainerImage& image : archive.images())
      for (const ImageLayer& layer : image.layers)
        if (task_of_.emplace(std::pair(index, layer.bytes.data()), 0).second) layers.push_back(&layer);
    std::ranges::stable_sort(
        layers, [](const ImageLayer* a, const ImageLayer* b) { return a->bytes.size() > b->bytes.size(); });
    const auto reading = std::make_shared<Reading>();
    for (const ImageLayer* layer : layers) {
      task_of_[{index, layer->bytes.data()}] = tasks_.size();
      tasks_.push_back({index, static_cast<unsigned>(layers.size()), nullptr, reading, layer});
    }
  }

  /// Scans a task's file again, alone and from the start, after it ran out of memory. False if it fails
  /// again; what the threads found of it stays then.
  bool retry_alone(std::size_t index) {
    const Task& task = tasks_[index];
    Found found;
    try {
      look_at(inputs_.files[task.input], {task.input, 1, nullptr, std::make_shared<Reading>(), task.layer},
              found);
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
    found_[index].notes.push_back({input.shown(), no_memory_clause()});
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

  void look_at(const Input& input, const Task& task, Found& out) {
    const std::string name = input.shown();
    if (task.layer != nullptr) return look_into_layer(name, task, out);
    std::array<std::byte, kFirstBytes> buffer;
    std::string note;
    const Bytes first = read_first(input.path, buffer, note);
    const FileKind kind = file_kind(first, name, input.named);
    const bool packed = kind == FileKind::other && input.named && is_compressed(first);
    if (kind != FileKind::other || packed) {
      auto opened = MappedFile::open(input.path);
      if (auto* why = std::get_if<std::string>(&opened)) {
        note = *why;
      } else {
        const auto& file = std::get<MappedFile>(opened);
        if (packed && !is_compressed_tar(file.bytes())) {
          note = "is compressed, and not an archive";
        } else if (kind == FileKind::container || packed) {
          look_into(name, file.bytes(), task, packed, out);
        } else {
          ScannedObject object;
          object.path = name;
          keep(scan_object(std::move(object), file.bytes(), options_), out);
        }
        if (file.has_shrunk()) {
          out.objects.clear();  // what was read is not what any file has
          note = "became shorter while it was read";
        }
      }
    } else if (input.named && note.empty()) {
      note = first.empty() ? "is empty" : "is neither a file that can hold device code nor an archive";
    }
    if (!note.empty()) out.notes.push_back({name, note});
    out.named_unread = out.named_unread || (input.named && !out.notes.empty());
  }

  void look_into_layer(const std::string& name, const Task& task, Found& out) {
    const std::string label = fmt::format("{}!{}", name, task.layer->name);
    ContainerVisitor visitor = visitor_of(label, task.layer->bytes, task, out);
    visitor.budget = &task.reading->budget;
    visit_layer(visitor, name, options_, out.layer);
    if (!task.layer->bytes.empty()) each_tar_member(task.layer->bytes, ContainerLimits{}, visitor);
    out.named_unread = !out.notes.empty();
  }

  void look_into(const std::string& name, Bytes bytes, const Task& task, bool tar, Found& out) {
    ContainerVisitor visitor = visitor_of(name, bytes, task, out);
    visitor.queue = task.queue.get();
    visitor.visit = [&](const Member& member) {
      ScannedObject object;
      object.path = name;
      object.member = member.name;
      object.package = package_name(package_of_archive(name));
      keep(scan_object(std::move(object), member.bytes, options_), out);
    };
    tar ? each_tar_member(bytes, ContainerLimits{}, visitor)
        : each_member(bytes, name, ContainerLimits{}, visitor);
  }

  ContainerVisitor visitor_of(const std::string& name, Bytes bytes, const Task& task, Found& out) {
    ContainerVisitor visitor;
    visitor.member_memory = std::max(memory_limit() / 2 / jobs_ / kSharesOfThread, kMinOfThread);
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
    visitor.wants = [](std::string_view member, std::uint64_t) { return worth_a_look(member); };
    visitor.wants_content = [](std::string_view member, Bytes first) {
      return file_kind(first, std::string(member), true) != FileKind::other;
    };
    visitor.damaged = [&name, &out](std::string_view member, std::uint64_t offset, const std::string& what) {
      out.notes.push_back({fmt::format("{}{}{}", name, member.empty() ? "" : "!", member),
                           fmt::format("at offset {}, {}", offset, what)});
    };
    return visitor;
  }

  // What is never device code by its name needs no decompression to be told.
  static bool worth_a_look(std::string_view name) {
    constexpr std::string_view kNever[] = {".py",  ".pyc", ".pyi",  ".h",    ".hpp", ".cuh",
                                           ".txt", ".md",  ".json", ".html", ".js",  ".png"};
    return std::ranges::none_of(kNever, [&](std::string_view ending) { return name.ends_with(ending); });
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
  std::vector<Task> tasks_;                   ///< each taken by one thread
  std::vector<Found> found_;                  ///< by task; the first is of all
  std::map<std::size_t, OpenImages> images_;  ///< by input
  std::map<std::pair<std::size_t, const std::byte*>, std::size_t>
      task_of_;  ///< by input and bytes of a layer
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> most_{SIZE_MAX};  ///< threads that go on
  std::atomic<std::uint64_t> done_{0};
  std::uint64_t total_ = 0;
  std::latch start_{1};                    ///< all threads have been started
  std::counting_semaphore<> finished_{0};  ///< threads
};

void sort_results(Scan& scan) {
  std::ranges::sort(scan.objects, [](const ScannedObject& a, const ScannedObject& b) {
    return std::tie(a.path, a.member) < std::tie(b.path, b.member);
  });
  // Of several packages, the scan is about those that somebody asked for, and of these the one with most
  // device code.
  std::map<std::string, std::pair<bool, std::uint64_t>> weights;
  for (const ScannedObject& object : scan.objects) {
    auto& [requested, modules] = weights[object.package.label()];
    requested = requested || object.requested;
    modules += object.modules;
  }
  std::ranges::stable_sort(scan.findings, [&](const Finding& a, const Finding& b) {
    const auto& of_a = weights[a.package.label()];
    const auto& of_b = weights[b.package.label()];
    return std::tie(b.severity, b.confidence, of_b, a.object) <
           std::tie(a.severity, a.confidence, of_a, b.object);
  });
  std::ranges::sort(scan.notes, {}, &ReadNote::text);
  const auto same = [](const ReadNote& a, const ReadNote& b) { return a.text() == b.text(); };
  scan.notes.erase(std::unique(scan.notes.begin(), scan.notes.end(), same), scan.notes.end());
}

// A verdict of `ok` depends on them as much as a finding does.
void note_newer(Scan& scan) {
  image::Version isa;
  for (const ScannedObject& object : scan.objects)
    for (const ImageCount& image : object.images)
      if (image.candidate.kind == image::ImageKind::ptx) isa = std::max(isa, image.candidate.isa);
  scan.newer = {newer_cuda_than_known(scan.driver), newer_ptx_than_known(isa)};
  std::erase(scan.newer, "");
}

}  // namespace

Scan scan(const std::vector<fs::path>& paths, const ScanRequest& options) {
  Scan out;
  out.targets = options.targets;
  out.driver = options.driver;
  out.sizes = options.sizes;
  Inputs inputs = list_inputs(paths);
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
  Finder packages;
  std::mutex one_at_a_time;
  ScanRequest with_owner = options;
  with_owner.owner = [&](const std::string& path) -> Owner {
    const std::lock_guard lock(one_at_a_time);
    const std::string absolute = fs::absolute(path).string();
    const auto& package = packages.of(absolute);
    if (!package) return {};
    return {*package, python_environment(absolute, package->environment, package->manager == "conda")};
  };
  Scanner scanner(inputs, with_owner);
  scanner.run();
  scanner.add_images(out);
  LooseFindings loose;
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
    out.named_unread = out.named_unread || found.named_unread;
  }
  for (Finding& finding : std::move(loose).take()) out.findings.push_back(std::move(finding));
  excuse_files_for_other_gpus(out);
  add_old_driver_findings(out);
  sort_results(out);
  note_newer(out);
  const auto groups = of_one_file(out.findings);
  tell_of_each_other(groups, out.findings);
  advise_on(out.findings);
  out.fleet = fleet_plans(out);
  merge(groups, out);
  refuse_by_driver(out);
  // A folder without device code was read all right; what was named and cannot be read was not.
  out.nothing_readable = out.objects.empty() && out.notes.size() >= out.files && !out.notes.empty();
  return out;
}

}  // namespace kshim::verbs
