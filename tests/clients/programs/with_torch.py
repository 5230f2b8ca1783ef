# SPDX-License-Identifier: Apache-2.0
# with_torch.py: PyTorch's own kernels, those of the libraries it brings, a graph, a kernel that it compiles itself.
import torch
from client import end, step

with step("add"):
    data = torch.zeros(4096, device="cuda") + 1  # fails
with step("sort"):
    torch.sort(torch.empty(4096, device="cuda"))  # fails
if torch.cuda.get_device_capability(0) >= (7, 5):
    with step("matmul"):
        data.reshape(64, 64) @ data.reshape(64, 64)
    with step("convolution"):
        torch.nn.Conv2d(3, 8, 3).cuda()(torch.zeros(1, 3, 32, 32, device="cuda"))
    with step("fft"):
        torch.fft.fft(data)
    with step("jiterator"):
        torch.cuda.jiterator._create_jit_fn("template <typename T> T grow(T x) { return x + 1; }")(data)
    with step("graph"):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            data + 1
        graph.replay()
    with step("training"):
        model = torch.nn.Linear(8, 8).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.zeros(4, 8, device="cuda")).sum().backward()
        optimizer.step()
with step("synchronize"):
    torch.cuda.synchronize()
end()
