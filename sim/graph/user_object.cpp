// SPDX-License-Identifier: Apache-2.0
#include "graph/user_object.h"

#include <climits>

#include "context/context.h"
#include "entry/entry.h"
#include "graph/graph.h"

namespace kshim::sim {

bool UserObject::release(UserObject& object, unsigned count) noexcept {
  std::uint64_t before = object.references.load(std::memory_order_relaxed);
  do {
    if (before < count) return false;
  } while (!object.references.compare_exchange_weak(before, before - count, std::memory_order_acq_rel));
  if (before != count) return true;
  const CUhostFn destroy = object.destroy;
  void* const what = object.what;
  delete &object;
  destroy(what);
  return true;
}

UserObjects::UserObjects(const UserObjects& other) : held_(other.held_) {
  for (const auto& [object, count] : held_) object->retain(count);
}

UserObjects::~UserObjects() {
  for (const auto& [object, count] : held_) UserObject::release(*object, count);
}

bool UserObjects::release(UserObject& object, unsigned count) noexcept {
  const auto found = held_.find(&object);
  if (found == held_.end() || found->second < count) return false;
  found->second -= count;
  if (found->second == 0) held_.erase(found);
  return UserObject::release(object, count);
}

CUresult entry::cuUserObjectCreate(CUuserObject* out, void* pointer, CUhostFn destroy, unsigned int count,
                                   unsigned int flags) {
  if (const CUresult ready = check_initialized(); ready != CUDA_SUCCESS) return ready;
  if (out == nullptr || destroy == nullptr || count == 0 || count > INT_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;  // the one flag there is, and required
  *out = (new UserObject(pointer, destroy, count))->handle<CUuserObject>();
  return CUDA_SUCCESS;
}

CUresult entry::cuUserObjectRetain(CUuserObject handle, unsigned int count) {
  auto* object = object_of<UserObject>(handle);
  if (object == nullptr || count == 0 || count > INT_MAX) return CUDA_ERROR_INVALID_VALUE;
  object->retain(count);
  return CUDA_SUCCESS;
}

CUresult entry::cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  auto* object = object_of<UserObject>(handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  return UserObject::release(*object, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult entry::cuGraphRetainUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count,
                                        unsigned int flags) {
  auto* graph = object_of<Graph>(graph_handle);
  auto* object = object_of<UserObject>(handle);
  if (graph == nullptr || object == nullptr || count == 0 || count > INT_MAX) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) object->retain(count);
  graph->objects.adopt(*object, count);
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphReleaseUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count) {
  auto* graph = object_of<Graph>(graph_handle);
  auto* object = object_of<UserObject>(handle);
  if (graph == nullptr || object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  return graph->objects.release(*object, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace kshim::sim
