"""PyTorch programs as plait's: graphs of ``aten`` operators, and a backend of ``torch.compile``."""
