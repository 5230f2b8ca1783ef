// SPDX-License-Identifier: Apache-2.0
// Modules belong to a context, libraries to the process. A library makes one module in each context that uses
// it; a CUkernel stands for the functions of that name in all of them. The runtime passes CUkernel handles
// where a CUfunction is declared: find_function() takes either.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/driver_api.h"
#include "base/handles.h"
#include "modules/code.h"
#include "modules/image_set.h"

namespace kshim::sim {

struct Context;
struct Device;
struct Library;
struct Module;

/// What cuFuncSetAttribute and cuKernelSetAttribute change. -1: never set.
struct FunctionSettings {
  std::atomic<int> max_dynamic_shared{-1};  ///< bytes
  std::atomic<int> carveout{-1};            ///< percent
  std::atomic<int> cluster_width{0}, cluster_height{0}, cluster_depth{0};
  std::atomic<int> non_portable_cluster{0};
  std::atomic<int> cluster_policy{0};
};

/// What cuFuncSetBlockShape, cuFuncSetSharedSize and cuParamSet* keep for cuLaunch, cuLaunchGrid.
struct LegacyLaunch {
  unsigned block[3] = {1, 1, 1};
  unsigned shared = 0;
  std::vector<std::byte> parameters;
};

struct Function : Handled<Kind::function> {
  Function(Module& of, const KernelCode& with, FunctionSettings& settings_of, bool is_loaded);
  Module& module;
  const KernelCode& code;
  const std::string name;  ///< mangled, with its NUL: KernelInfo's is a view
  FunctionSettings& settings;
  const unsigned launch_bound;  ///< threads a block, by __launch_bounds__
  const unsigned most_threads;  ///< by registers, too
  std::atomic<bool> loaded;     ///< lazy loading: false until the first use
  LegacyLaunch legacy;          ///< guarded by the context's lock
};

struct Variable {
  CUdeviceptr address = 0;
  std::size_t size = 0;
  bool managed = false;
};

struct Module : Handled<Kind::module> {
  Module(Context& in, std::shared_ptr<const Code> with, Library* library_of);
  ~Module();
  Context& context;
  const std::shared_ptr<const Code> code;
  Library* const library;            ///< not null: made for a library, ends with it or with the context
  std::unique_ptr<ImageSet> images;  ///< of a module without a library: keeps what `code` looks into

  /// Allocates and initializes the variables. CUDA_ERROR_OUT_OF_MEMORY where the device is full.
  CUresult place_variables();
  /// Null: the image has no kernel of that name.
  Function* function(std::string_view name);
  const Variable* variable(std::string_view name) const;
  /// The one object for a texture or surface reference; nullptr: the image has no such name.
  const std::string* reference(std::string_view name);

 private:
  CUresult place_variable(const image::GlobalInfo& global, Variable& out);
  std::mutex lock_;
  std::unordered_map<std::string_view, std::unique_ptr<Function>> functions_;
  std::vector<std::unique_ptr<FunctionSettings>> settings_;  ///< of functions that no CUkernel stands for
  std::unordered_map<std::string_view, Variable> variables_;
  std::set<std::string, std::less<>> references_;
};

struct Kernel : Handled<Kind::kernel> {
  Kernel(Library& of, std::string_view kernel_name);
  Library& library;
  const std::string name;
  /// The function launched last: most processes have one context.
  std::atomic<Function*> recent{nullptr};
  FunctionSettings& settings(const Device& device) noexcept;

 private:
  std::unique_ptr<FunctionSettings[]> settings_;  ///< by device ordinal
};

struct Library : Handled<Kind::library> {
  explicit Library(std::unique_ptr<ImageSet> from);
  ~Library();
  const std::unique_ptr<ImageSet> images;

  /// Whether any device of the process has an image; else why the current one has none.
  CUresult judge();

  /// The module in a context, made at the first request; else why there is none (209 ...).
  CUresult module_in(Context& context, Module*& out);
  /// 500 where no device of the process has the kernel in its image; see docs/internals/simulator.md for a
  /// missing image.
  CUresult kernel(std::string_view name, Kernel*& out);
  /// The one object for this name, whether any image has it or not.
  Kernel& kernel_named(std::string_view name);
  /// The image of the current context's device, else of the first device that has one.
  CUresult any_code(std::shared_ptr<const Code>& out);
  CUresult managed(std::string_view name, Variable& out);
  /// Puts into the driver's log why there is no image. Returns `result`.
  CUresult explain_missing(CUresult result);
  /// A context ends: drops its module.
  void leave(const Module& module);

 private:
  CUresult place_managed(const image::GlobalInfo& global, Variable& out);
  // Taken in this order where several are needed; a context's lock comes last.
  std::mutex lock_;
  std::map<const Context*, std::unique_ptr<Module>> modules_;
  std::mutex kernels_lock_;
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels_;
  std::mutex managed_lock_;
  std::map<std::string, Variable, std::less<>> managed_;
};

/// cuModuleLoadData and the export table's relatives: `image` is a wrapper, fatbin, cubin or PTX text.
CUresult load_module(Context& context, const void* image, CUmodule* out);
/// `message`, where given, is what the compiler had to say.
CUresult load_module(Context& context, std::unique_ptr<ImageSet> images, CUmodule* out, std::string* message);
/// 400 for anything but a module, and for a library's.
CUresult unload_module(CUmodule module);
/// All modules of a context, a library's included.
void unload_modules(Context& context) noexcept;
/// Calls visit(CUfunction) for every kernel of a module. 400 for anything but a module.
CUresult each_function(CUmodule module, const std::function<void(CUfunction)>& visit);

/// The function behind a CUfunction, or behind a CUkernel in `context`: 400 for anything else, 209 and others
/// where the context's device has no image, 500 where its image lacks the kernel.
CUresult find_function(const void* handle, Context& context, Function*& out);
/// The same in the current context.
CUresult find_function(const void* handle, Function*& out);

/// Threads a block may have: by the kernel's launch bounds, and by registers, too.
int launch_bound(const KernelCode& code) noexcept;
int most_threads(const KernelCode& code, const Device& device) noexcept;
/// Bytes of shared memory a block has by declaration, and how many more a launch may ask for.
int static_shared(const KernelCode& code) noexcept;
int most_dynamic_shared(const KernelCode& code, const FunctionSettings& settings) noexcept;

/// Where parameter `index` lies, counted from the first one; 1 past the last. `size` may be null.
CUresult parameter_info(const KernelCode& code, std::size_t index, std::size_t* offset,
                        std::size_t* size) noexcept;

/// CU_FUNC_ATTRIBUTE_*, for a device whose image is `code`.
CUresult function_attribute(const KernelCode& code, const FunctionSettings& settings, const Device& device,
                            CUfunction_attribute attribute, int& value) noexcept;
CUresult set_function_attribute(const KernelCode& code, FunctionSettings& settings, const Device& device,
                                CUfunction_attribute attribute, int value) noexcept;

}  // namespace kshim::sim
