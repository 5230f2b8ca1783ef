// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: reserved addresses, physical memory as anonymous files, so that one piece can be
// mapped twice and handed to another process as the descriptor that a driver hands out.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "base/log.h"
#include "context/context.h"
#include "device/product.h"
#include "entry/entry.h"
#include "memory/allocations.h"

namespace kshim::sim {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

struct Physical : Handled<Kind::mem_handle> {
  Physical(int file, std::size_t bytes, const CUmemAllocationProp& made_with, int charged) noexcept
      : descriptor(file), size(bytes), properties(made_with), device(charged) {
    publish(this);
  }
  ~Physical() {
    ::close(descriptor);
    if (device >= 0) discharge(device, size);
  }
  const int descriptor;
  const std::size_t size;
  const CUmemAllocationProp properties;
  const int device;    ///< -1: host memory
  int references = 1;  ///< the program's and one for each mapping; guarded by the registry's lock
};

struct Mapping {
  std::size_t size;
  Physical* physical;
  std::map<int, CUmemAccess_flags> access;  ///< by device ordinal
};

struct Registry {
  std::mutex lock;
  std::map<std::uintptr_t, std::size_t> reserved;
  std::map<std::uintptr_t, Mapping> mapped;
};
Registry& registry() noexcept {
  static Registry& instance = *new Registry;
  return instance;
}

Physical* physical_of(CUmemGenericAllocationHandle handle) noexcept {
  return object_of<Physical>(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(handle)));
}
void drop(Physical* physical) noexcept {
  if (--physical->references == 0) delete physical;
}
bool whole(std::size_t size) noexcept { return size != 0 && size % kGranularity == 0; }

CUresult check_properties(const CUmemAllocationProp* p) noexcept {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  if (p == nullptr || p->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  constexpr int known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if ((p->requestedHandleTypes & ~known) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  switch (p->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return device_at(p->location.id) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

/// The mappings that together fill [at, at + size); empty range of iterators where they do not.
template <class Visit>
CUresult for_mappings(Registry& r, std::uintptr_t at, std::size_t size, Visit visit) {
  if (!whole(size)) return CUDA_ERROR_INVALID_VALUE;
  std::uintptr_t next = at;
  for (auto each = r.mapped.find(at); next < at + size; ++each) {
    if (each == r.mapped.end() || each->first != next) return CUDA_ERROR_INVALID_VALUE;
    next += each->second.size;
  }
  if (next != at + size) return CUDA_ERROR_INVALID_VALUE;
  for (auto each = r.mapped.find(at); each != r.mapped.end() && each->first < at + size;) visit(each);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult entry::cuMemGetAllocationGranularity(std::size_t* out, const CUmemAllocationProp* properties,
                                              CUmemAllocationGranularity_flags option) {
  if (const CUresult result = check_properties(properties); result != CUDA_SUCCESS) return result;
  const bool known =
      option == CU_MEM_ALLOC_GRANULARITY_MINIMUM || option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
  if (out == nullptr || !known) return CUDA_ERROR_INVALID_VALUE;
  *out = kGranularity;
  return CUDA_SUCCESS;
}

CUresult entry::cuMemAddressReserve(CUdeviceptr* out, std::size_t size, std::size_t alignment, CUdeviceptr,
                                    unsigned long long flags) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const std::size_t align = alignment == 0 ? kGranularity : alignment;
  const bool power = (align & (align - 1)) == 0;
  if (out == nullptr || !whole(size) || !power || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t unit = align < kGranularity ? kGranularity : align;
  if (size > PTRDIFF_MAX - unit) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = ::mmap(nullptr, size + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t aligned = (begin + unit - 1) / unit * unit;
  if (aligned != begin) ::munmap(memory, aligned - begin);
  ::munmap(reinterpret_cast<void*>(aligned + size), begin + unit - aligned);
  Registry& r = registry();
  const std::lock_guard guard(r.lock);
  r.reserved.emplace(aligned, size);
  *out = aligned;
  return CUDA_SUCCESS;
}

CUresult entry::cuMemAddressFree(CUdeviceptr pointer, std::size_t size) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Registry& r = registry();
  const std::lock_guard guard(r.lock);
  const auto found = r.reserved.find(address_of(pointer));
  if (found == r.reserved.end() || found->second != size) return CUDA_ERROR_INVALID_VALUE;
  const auto mapping = r.mapped.lower_bound(found->first);
  if (mapping != r.mapped.end() && mapping->first < found->first + size) return CUDA_ERROR_INVALID_VALUE;
  ::munmap(pointer_of(pointer), size);
  r.reserved.erase(found);
  return CUDA_SUCCESS;
}

CUresult entry::cuMemCreate(CUmemGenericAllocationHandle* out, std::size_t size,
                            const CUmemAllocationProp* properties, unsigned long long flags) {
  if (const CUresult result = check_properties(properties); result != CUDA_SUCCESS) return result;
  if (out == nullptr || !whole(size) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const bool on_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  const int device = on_device ? properties->location.id : -1;
  if (on_device && !charge(*device_at(device), size)) return CUDA_ERROR_OUT_OF_MEMORY;
  constexpr unsigned kCloseOnExec = 1;  // MFD_CLOEXEC; glibc knows the call from 2.27 on, Linux from 3.17
  const int file = static_cast<int>(::syscall(SYS_memfd_create, "kshim-sim", kCloseOnExec));
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0) {
    if (file >= 0) ::close(file);
    if (on_device) discharge(device, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = (new Physical(file, size, *properties, device))->handle<std::uintptr_t>();
  return CUDA_SUCCESS;
}

CUresult entry::cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const std::lock_guard guard(registry().lock);
  Physical* physical = physical_of(handle);
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  drop(physical);
  return CUDA_SUCCESS;
}

CUresult entry::cuMemMap(CUdeviceptr pointer, std::size_t size, std::size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long flags) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Registry& r = registry();
  const std::lock_guard guard(r.lock);
  Physical* physical = physical_of(handle);
  const std::uintptr_t at = address_of(pointer);
  if (physical == nullptr || flags != 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
  // A part of a handle, and another place than a step: reported of an RTX 3060 (tests/sim/ledger).
  if (offset != 0 || !whole(size) || size > physical->size || at % kGranularity != 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  auto reserved = r.reserved.upper_bound(at);
  if (reserved == r.reserved.begin()) return CUDA_ERROR_INVALID_VALUE;
  --reserved;
  if (at - reserved->first > reserved->second || size > reserved->second - (at - reserved->first)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int device = physical->device >= 0 ? physical->device : 0;
  if (adopt(nullptr, device, at, size, MemoryKind::mapped, 0) != CUDA_SUCCESS)
    return CUDA_ERROR_INVALID_VALUE;
  void* mapped = ::mmap(pointer_of(pointer), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                        physical->descriptor, 0);
  if (mapped == MAP_FAILED) {
    release(at, MemoryKind::mapped, MemoryKind::mapped);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  ++physical->references;
  r.mapped.emplace(at, Mapping{size, physical, {}});
  return CUDA_SUCCESS;
}

CUresult entry::cuMemUnmap(CUdeviceptr pointer, std::size_t size) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Registry& r = registry();
  const std::lock_guard guard(r.lock);
  return for_mappings(r, address_of(pointer), size, [&](auto& each) {
    static_cast<void>(release(each->first, MemoryKind::mapped, MemoryKind::mapped));
    void* hole = ::mmap(reinterpret_cast<void*>(each->first), each->second.size, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (hole == MAP_FAILED) log_line(LogLevel::error, "cuMemUnmap: the pages stay mapped");
    drop(each->second.physical);
    each = r.mapped.erase(each);
  });
}

CUresult entry::cuMemSetAccess(CUdeviceptr pointer, std::size_t size, const CUmemAccessDesc* wanted,
                               std::size_t count) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  if (wanted == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const bool device = wanted[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (device && device_at(wanted[i].location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  }
  Registry& r = registry();
  const std::lock_guard guard(r.lock);
  return for_mappings(r, address_of(pointer), size, [&](auto& each) {
    for (std::size_t i = 0; i < count; ++i) {
      if (wanted[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        each->second.access[wanted[i].location.id] = wanted[i].flags;
      }
    }
    ++each;
  });
}

CUresult entry::cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                               CUdeviceptr pointer) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Registry& r = registry();
  const std::lock_guard guard(r.lock);
  auto found = r.mapped.upper_bound(address_of(pointer));
  if (found == r.mapped.begin()) return CUDA_ERROR_INVALID_VALUE;
  --found;
  if (address_of(pointer) - found->first >= found->second.size) return CUDA_ERROR_INVALID_VALUE;
  const auto access = found->second.access.find(location->id);
  *flags = access != found->second.access.end() ? access->second : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult entry::cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* pointer) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Registry& r = registry();
  const std::lock_guard guard(r.lock);
  auto found = r.mapped.upper_bound(address);
  if (out == nullptr || found == r.mapped.begin()) return CUDA_ERROR_INVALID_VALUE;
  --found;
  if (address - found->first >= found->second.size) return CUDA_ERROR_INVALID_VALUE;
  ++found->second.physical->references;
  *out = found->second.physical->handle<std::uintptr_t>();
  return CUDA_SUCCESS;
}

CUresult entry::cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* out,
                                                       CUmemGenericAllocationHandle handle) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const std::lock_guard guard(registry().lock);
  const Physical* physical = physical_of(handle);
  if (out == nullptr || physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = physical->properties;
  return CUDA_SUCCESS;
}

CUresult entry::cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType type, unsigned long long flags) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const std::lock_guard guard(registry().lock);
  const Physical* physical = physical_of(handle);
  if (out == nullptr || physical == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
      (physical->properties.requestedHandleTypes & type) == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int copy = ::fcntl(physical->descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(out) = copy;
  return CUDA_SUCCESS;
}

CUresult entry::cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* shared,
                                               CUmemAllocationHandleType type) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (out == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  const int copy = ::fcntl(static_cast<int>(reinterpret_cast<std::intptr_t>(shared)), F_DUPFD_CLOEXEC, 0);
  struct stat status {};
  if (copy < 0) return CUDA_ERROR_INVALID_VALUE;
  if (::fstat(copy, &status) != 0 || !whole(static_cast<std::size_t>(status.st_size))) {
    ::close(copy);
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = type;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, context->device.ordinal};
  // The exporter's device is charged, not this one: -1.
  *out = (new Physical(copy, static_cast<std::size_t>(status.st_size), properties, -1))
             ->handle<std::uintptr_t>();
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim
