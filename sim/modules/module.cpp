// SPDX-License-Identifier: Apache-2.0
#include "modules/module.h"

#include <algorithm>
#include <cstring>

#include "base/settings.h"
#include "context/context.h"
#include "memory/allocations.h"

namespace kshim::sim {

Function::Function(Module& of, const KernelCode& with, FunctionSettings& settings_of, bool is_loaded)
    : module(of),
      code(with),
      name(with.info.name),
      settings(settings_of),
      launch_bound(static_cast<unsigned>(sim::launch_bound(with))),
      most_threads(static_cast<unsigned>(sim::most_threads(with, of.context.device))),
      loaded(is_loaded) {
  publish(this);
}

Module::Module(Context& in, std::shared_ptr<const Code> with, Library* library_of)
    : context(in), code(std::move(with)), library(library_of) {
  publish(this);
}

Module::~Module() {
  retire();
  for (const auto& [name, variable] : variables_) {
    // A library's managed variables are the library's: one for all contexts.
    if (variable.managed && library != nullptr) continue;
    release(address_of(variable.address), MemoryKind::global, MemoryKind::managed);
  }
}

CUresult Module::place_variable(const image::GlobalInfo& global, Variable& out) {
  out.size = static_cast<std::size_t>(global.size);
  out.managed = global.managed;
  if (global.managed && library != nullptr) return library->managed(global.name, out);
  const MemoryKind kind = global.managed ? MemoryKind::managed : MemoryKind::global;
  Allocation memory;
  const CUresult result = allocate(context, std::max<std::size_t>(out.size, 1), kind, 0, memory);
  if (result != CUDA_SUCCESS) return result;
  out.address = memory.base;
  if (!global.initial.empty())
    std::memcpy(pointer_of(out.address), global.initial.data(), global.initial.size());
  return CUDA_SUCCESS;
}

CUresult Module::place_variables() {
  for (const image::GlobalInfo& global : code->globals()) {
    if (variables_.contains(global.name)) continue;
    Variable variable;
    if (const CUresult result = place_variable(global, variable); result != CUDA_SUCCESS) return result;
    variables_.emplace(global.name, variable);
  }
  return CUDA_SUCCESS;
}

Function* Module::function(std::string_view name) {
  const std::lock_guard guard(lock_);
  const auto found = functions_.find(name);
  if (found != functions_.end()) return found->second.get();
  const KernelCode* with = code->kernel(name);
  if (with == nullptr) return nullptr;
  FunctionSettings* own = nullptr;
  if (library != nullptr) {
    own = &library->kernel_named(name).settings(context.device);
  } else {
    own = settings_.emplace_back(std::make_unique<FunctionSettings>()).get();
  }
  auto made = std::make_unique<Function>(*this, *with, *own, settings().eager);
  return functions_.emplace(with->info.name, std::move(made)).first->second.get();
}

const Variable* Module::variable(std::string_view name) const {
  const auto found = variables_.find(name);
  return found != variables_.end() ? &found->second : nullptr;
}

const std::string* Module::reference(std::string_view name) {
  if (!code->has_text(name)) return nullptr;
  const std::lock_guard guard(lock_);
  return &*references_.emplace(name).first;
}

CUresult load_module(Context& context, std::unique_ptr<ImageSet> images, CUmodule* out,
                     std::string* message) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<const Code> code;
  const CUresult chosen = images->code_for(context.device, code);
  if (chosen != CUDA_SUCCESS) {
    if (message != nullptr) *message = images->message_for(context.device);
    return chosen;
  }
  auto module = std::make_unique<Module>(context, std::move(code), nullptr);
  module->images = std::move(images);
  if (const CUresult result = module->place_variables(); result != CUDA_SUCCESS) return result;
  *out = module->handle<CUmodule>();
  const std::lock_guard guard(context.lock);
  context.modules.push_back(module.release());
  return CUDA_SUCCESS;
}

CUresult load_module(Context& context, const void* image, CUmodule* out) {
  std::unique_ptr<ImageSet> images;
  const CUresult read = ImageSet::from_memory(image, true, images);
  return read != CUDA_SUCCESS ? read : load_module(context, std::move(images), out, nullptr);
}

CUresult unload_module(CUmodule handle) {
  auto* module = object_of<Module>(handle);
  if (module == nullptr || module->library != nullptr) return CUDA_ERROR_INVALID_HANDLE;
  {
    const std::lock_guard guard(module->context.lock);
    std::erase(module->context.modules, module);
  }
  delete module;
  return CUDA_SUCCESS;
}

void unload_modules(Context& context) noexcept {
  std::vector<Module*> ending;
  {
    const std::lock_guard guard(context.lock);
    ending.swap(context.modules);
  }
  for (Module* module : ending) {
    if (module->library != nullptr) {
      module->library->leave(*module);
    } else {
      delete module;
    }
  }
}

CUresult each_function(CUmodule handle, const std::function<void(CUfunction)>& visit) {
  auto* module = object_of<Module>(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (const std::string_view name : module->code->kernel_names()) {
    Function* function = module->function(name);
    if (function == nullptr) return CUDA_ERROR_INVALID_IMAGE;
    visit(function->handle<CUfunction>());
  }
  return CUDA_SUCCESS;
}

CUresult find_function(const void* handle, Context& context, Function*& out) {
  if (auto* function = object_of<Function>(handle)) {
    if (&function->module.context != &context) return CUDA_ERROR_INVALID_HANDLE;
    out = function;
    return CUDA_SUCCESS;
  }
  auto* kernel = object_of<Kernel>(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Function* recent = kernel->recent.load(std::memory_order_acquire);
  if (recent == nullptr || &recent->module.context != &context) {
    Module* module = nullptr;
    if (const CUresult result = kernel->library.module_in(context, module); result != CUDA_SUCCESS)
      return result;
    recent = module->function(kernel->name);
    if (recent == nullptr) return CUDA_ERROR_NOT_FOUND;
    kernel->recent.store(recent, std::memory_order_release);
  }
  out = recent;
  return CUDA_SUCCESS;
}

CUresult find_function(const void* handle, Function*& out) {
  Context* context = nullptr;
  if (const CUresult ready = require_context(context); ready != CUDA_SUCCESS) return ready;
  return find_function(handle, *context, out);
}

}  // namespace kshim::sim
