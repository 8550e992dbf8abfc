"""Convolution, batch norm and ReLU in tinygrad, with the statistics of the batch.

plait compare tinygrad examples/tinygrad_block.py
"""

from tinygrad import Context, Tensor, nn


def main() -> Tensor:
    convolution, norm = nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm(64)
    convolution.weight = Tensor.empty(64, 64, 3, 3)
    with Context(TRAINING=1):
        return norm(convolution(Tensor.empty(32, 64, 56, 56))).relu()


def softmax() -> Tensor:
    return Tensor.empty(4096, 4096).softmax()
