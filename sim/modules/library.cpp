// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>

#include "base/driver_log.h"
#include "base/settings.h"
#include "context/context.h"
#include "memory/allocations.h"
#include "modules/module.h"

namespace kshim::sim {
namespace {

constexpr std::size_t kUnit = 512;  // as allocations.cpp counts device memory

/// The devices of the process, the current context's first: a library is of no context, and the runtime loads
/// each one once for all devices.
std::vector<const Device*> devices_in_order() {
  std::vector<const Device*> order;
  const Context* current = current_context();
  if (current != nullptr) order.push_back(&current->device);
  for (const Device& device : devices()) {
    if (current == nullptr || &device != &current->device) order.push_back(&device);
  }
  return order;
}

}  // namespace

Kernel::Kernel(Library& of, std::string_view kernel_name)
    : library(of), name(kernel_name), settings_(std::make_unique<FunctionSettings[]>(devices().size())) {
  publish(this);
}

FunctionSettings& Kernel::settings(const Device& device) noexcept {
  return settings_[static_cast<std::size_t>(device.ordinal)];
}

Library::Library(std::unique_ptr<ImageSet> from) : images(std::move(from)) { publish(this); }

Library::~Library() {
  retire();
  for (const auto& [context, module] : modules_) {
    const std::lock_guard guard(module->context.lock);
    std::erase(module->context.modules, module.get());
  }
  modules_.clear();
  for (const auto& [name, variable] : managed_) {
    release(address_of(variable.address), MemoryKind::managed, MemoryKind::managed);
    std::free(pointer_of(variable.address));
  }
}

CUresult Library::judge() {
  std::shared_ptr<const Code> code;
  return any_code(code);
}

CUresult Library::any_code(std::shared_ptr<const Code>& out) {
  CUresult first = CUDA_SUCCESS;
  for (const Device* device : devices_in_order()) {
    const CUresult result = images->code_for(*device, out);
    if (result == CUDA_SUCCESS) return result;
    if (first == CUDA_SUCCESS) first = result;
  }
  return first;
}

CUresult Library::explain_missing(CUresult result) {
  const Device& device = *devices_in_order().front();
  return explain_image(result, static_cast<int>(device.limits.cc.number()), images->message_for(device));
}

CUresult Library::module_in(Context& context, Module*& out) {
  std::unique_lock guard(lock_);
  const auto found = modules_.find(&context);
  if (found != modules_.end()) {
    out = found->second.get();
    return CUDA_SUCCESS;
  }
  std::shared_ptr<const Code> code;
  if (const CUresult result = images->code_for(context.device, code); result != CUDA_SUCCESS) return result;
  auto module = std::make_unique<Module>(context, std::move(code), this);
  if (const CUresult result = module->place_variables(); result != CUDA_SUCCESS) return result;
  out = module.get();
  modules_.emplace(&context, std::move(module));
  const std::lock_guard in_context(context.lock);
  context.modules.push_back(out);
  return CUDA_SUCCESS;
}

Kernel& Library::kernel_named(std::string_view name) {
  const std::lock_guard guard(kernels_lock_);
  auto found = kernels_.find(name);
  if (found == kernels_.end()) found = kernels_.emplace(name, std::make_unique<Kernel>(*this, name)).first;
  return *found->second;
}

CUresult Library::kernel(std::string_view name, Kernel*& out) {
  CUresult missing = CUDA_SUCCESS;
  bool any = false;
  for (const Device* device : devices_in_order()) {
    std::shared_ptr<const Code> code;
    const CUresult result = images->code_for(*device, code);
    if (result != CUDA_SUCCESS) {
      if (missing == CUDA_SUCCESS) missing = result;
      continue;
    }
    any = true;
    if (!code->has_kernel(name)) continue;
    out = &kernel_named(name);
    return CUDA_SUCCESS;
  }
  if (any) return CUDA_ERROR_NOT_FOUND;
  if (settings().library_rule != LibraryRule::first_use) return missing;
  out = &kernel_named(name);
  return CUDA_SUCCESS;
}

CUresult Library::place_managed(const image::GlobalInfo& global, Variable& out) {
  // One allocation for all contexts, also before there is any: counted on the first device, ended with the
  // library.
  const Device& home = *devices_in_order().front();
  const std::size_t size = static_cast<std::size_t>(global.size + kUnit - 1) / kUnit * kUnit;
  if (!charge(home, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = std::aligned_alloc(kUnit, size);
  if (memory == nullptr) {
    discharge(home.ordinal, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  std::memset(memory, 0, size);
  if (!global.initial.empty()) std::memcpy(memory, global.initial.data(), global.initial.size());
  const auto base = reinterpret_cast<std::uintptr_t>(memory);
  const auto bytes = static_cast<std::size_t>(global.size);
  const CUresult result =
      adopt(nullptr, home.ordinal, base, bytes, MemoryKind::managed, CU_MEM_ATTACH_GLOBAL);
  out = {base, bytes, true};
  return result;
}

CUresult Library::managed(std::string_view name, Variable& out) {
  std::shared_ptr<const Code> code;
  if (const CUresult result = any_code(code); result != CUDA_SUCCESS) return result;
  const std::lock_guard guard(managed_lock_);
  const auto found = managed_.find(name);
  if (found != managed_.end()) {
    out = found->second;
    return CUDA_SUCCESS;
  }
  for (const image::GlobalInfo& global : code->globals()) {
    if (!global.managed || global.name != name || global.size == 0) continue;
    const CUresult result = place_managed(global, out);
    if (result == CUDA_SUCCESS) managed_.emplace(name, out);
    return result;
  }
  return CUDA_ERROR_NOT_FOUND;
}

void Library::leave(const Module& module) {
  {
    const std::lock_guard guard(kernels_lock_);
    for (const auto& [name, each] : kernels_) {
      const Function* recent = each->recent.load(std::memory_order_acquire);
      if (recent != nullptr && &recent->module == &module)
        each->recent.store(nullptr, std::memory_order_release);
    }
  }
  const std::lock_guard guard(lock_);
  modules_.erase(&module.context);
}

}  // namespace kshim::sim
