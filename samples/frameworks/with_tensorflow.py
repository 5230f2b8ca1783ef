# SPDX-License-Identifier: Apache-2.0
"""An operation of TensorFlow's own, a matrix product of cuBLAS, a convolution of cuDNN."""
import tensorflow as tf

print("TensorFlow", tf.__version__, "sees", len(tf.config.list_physical_devices("GPU")), "GPU")
device = "/GPU:0" if tf.config.list_physical_devices("GPU") else "/CPU:0"
with tf.device(device):
    x = tf.ones([64, 64]) + 1.0
    print("add", x.shape)
    print("matmul", tf.matmul(x, x).shape)
    print("conv", tf.nn.conv2d(tf.ones([1, 8, 8, 3]), tf.ones([3, 3, 3, 4]), 1, "SAME").shape)
