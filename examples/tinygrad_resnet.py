"""A training step of ResNet-50 in tinygrad: loss, gradients, SGD with momentum, running statistics.

plait compare tinygrad examples/tinygrad_resnet.py
"""

from __future__ import annotations

from tinygrad import Context, Tensor, nn

BATCH, IMAGE, CLASSES = 32, 224, 1000
STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Width and blocks of each stage."""


class Bottleneck:
    def __init__(self, channels: int, width: int, stride: int):
        self.reduce = nn.Conv2d(channels, width, 1, bias=False)
        self.reduce_norm = nn.BatchNorm(width)
        self.spatial = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.spatial_norm = nn.BatchNorm(width)
        self.widen = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.widen_norm = nn.BatchNorm(4 * width)
        self.shortcut: list[nn.Conv2d | nn.BatchNorm] = []
        if stride != 1 or channels != 4 * width:
            convolution = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.shortcut = [convolution, nn.BatchNorm(4 * width)]

    def __call__(self, x: Tensor) -> Tensor:
        hidden = self.reduce_norm(self.reduce(x)).relu()
        hidden = self.spatial_norm(self.spatial(hidden)).relu()
        return (self.widen_norm(self.widen(hidden)) + x.sequential(self.shortcut)).relu()


class ResNet50:
    def __init__(self):
        self.stem = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.stem_norm = nn.BatchNorm(64)
        self.blocks: list[Bottleneck] = []
        channels = 64
        for width, count in STAGES:
            for block in range(count):
                stride = 2 if block == 0 and width > 64 else 1
                self.blocks.append(Bottleneck(channels, width, stride))
                channels = 4 * width
        self.classify = nn.Linear(channels, CLASSES)

    def __call__(self, x: Tensor) -> Tensor:
        hidden = self.stem_norm(self.stem(x)).relu()
        hidden = hidden.pad((1, 1, 1, 1)).max_pool2d(3, 2).sequential(self.blocks)
        return self.classify(hidden.mean((2, 3)))


def main() -> list[Tensor]:
    """The loss, and all that a step writes."""
    model = ResNet50()
    state = nn.state.get_state_dict(model)
    for tensor in state.values():
        tensor.replace(Tensor.empty(*tensor.shape, dtype=tensor.dtype))
    with Context(TRAINING=1):
        optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1, momentum=0.9)
        labels = Tensor.empty(BATCH, dtype="int32")
        logits = model(Tensor.empty(BATCH, 3, IMAGE, IMAGE))
        loss = logits.sparse_categorical_crossentropy(labels).backward()
        written = optimizer.schedule_step()
    statistics = [state[name] for name in state if "running" in name or "batches" in name]
    return [loss, *written, *statistics]
