"""A training step: conv -> batch norm -> relu, twice, a loss, its gradients, and SGD with momentum.

plait run examples/conv_bn_relu.py --check
plait report examples/conv_bn_relu.py --pipeline seed
"""

import plait
from plait import Tensor
from plait.nn import functional as F

BATCH, CHANNELS, SIZE = 16, 32, 32


def block(x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """relu(batch_norm(conv(x))), and the convolution's result for the running statistics."""
    y = F.conv2d(x, weight, padding=1)
    return F.batch_norm(y, weight=scale, bias=shift, training=True).relu(), y


def main() -> list[Tensor]:
    """One step: the loss, then new parameters, momenta and running statistics in place."""
    x = plait.empty(BATCH, CHANNELS, SIZE, SIZE, name="x")
    target = plait.empty(BATCH, CHANNELS, SIZE, SIZE, name="target")
    shapes = {
        "w1": (CHANNELS, CHANNELS, 3, 3),
        "scale1": (CHANNELS,),
        "shift1": (CHANNELS,),
        "w2": (CHANNELS, CHANNELS, 3, 3),
        "scale2": (CHANNELS,),
        "shift2": (CHANNELS,),
    }
    params = [plait.empty(shape, name=name, donated=True) for name, shape in shapes.items()]
    momenta = [plait.empty(p.shape, name=f"m_{p.name}", donated=True) for p in params]
    stats = [plait.empty(CHANNELS, name=name, donated=True) for name in ("mean1", "var1")]

    hidden, y1 = block(x, *params[:3])
    output, _ = block(hidden, *params[3:])
    loss = F.mse_loss(output, target)

    gradients = plait.grad(loss, params)
    new_params, new_momenta = plait.optim.sgd(params, gradients, momenta, lr=0.1, momentum=0.9)
    new_stats = F.batch_norm_stats(y1, *stats)
    updated = [*new_params, *new_momenta, *new_stats]
    return [loss, *map(plait.assign, [*params, *momenta, *stats], updated)]
