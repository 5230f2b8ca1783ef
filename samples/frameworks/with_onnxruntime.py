# SPDX-License-Identifier: Apache-2.0
"""A small network with the CUDA provider of ONNX Runtime. --preload: NVIDIA's libraries from the wheels beside it."""
import sys

import numpy
import onnxruntime
from onnx import TensorProto, helper

if "--preload" in sys.argv:
    onnxruntime.preload_dlls()


def floats(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


graph = helper.make_graph(
    [helper.make_node("MatMul", ["a", "b"], ["c"]), helper.make_node("Relu", ["c"], ["d"]),
     helper.make_node("Conv", ["d", "w"], ["e"], pads=[1, 1, 1, 1])], "net",
    [floats("a", 1, 3, 8, 8), floats("b", 1, 3, 8, 8), floats("w", 4, 3, 3, 3)], [floats("e", 1, 4, 8, 8)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
print("ONNX Runtime", onnxruntime.__version__, "uses", ", ".join(session.get_providers()))
image = numpy.ones((1, 3, 8, 8), numpy.float32)
print(session.run(None, {"a": image, "b": image, "w": numpy.ones((4, 3, 3, 3), numpy.float32)})[0].shape)
