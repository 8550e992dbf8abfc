"""Methods of tensors as functions, as in PyTorch: ``plait.exp(x)`` is ``x.exp()``."""

from plait.frontend.tensor import Tensor

abs = Tensor.abs
all = Tensor.all
any = Tensor.any
amax = Tensor.amax
amin = Tensor.amin
argmax = Tensor.argmax
argmin = Tensor.argmin
clamp = Tensor.clamp
cos = Tensor.cos
cumsum = Tensor.cumsum
exp = Tensor.exp
flatten = Tensor.flatten
flip = Tensor.flip
gather = Tensor.gather
log = Tensor.log
log_softmax = Tensor.log_softmax
logsumexp = Tensor.logsumexp
matmul = Tensor.matmul
max = Tensor.max
maximum = Tensor.maximum
mean = Tensor.mean
min = Tensor.min
minimum = Tensor.minimum
permute = Tensor.permute
pow = Tensor.pow
prod = Tensor.prod
relu = Tensor.relu
reshape = Tensor.reshape
rsqrt = Tensor.rsqrt
sigmoid = Tensor.sigmoid
sin = Tensor.sin
softmax = Tensor.softmax
split = Tensor.split
sqrt = Tensor.sqrt
squeeze = Tensor.squeeze
std = Tensor.std
sum = Tensor.sum
tanh = Tensor.tanh
transpose = Tensor.transpose
tril = Tensor.tril
triu = Tensor.triu
unsqueeze = Tensor.unsqueeze
var = Tensor.var
