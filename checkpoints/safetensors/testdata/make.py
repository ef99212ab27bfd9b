"""Makes python.safetensors with the reference implementation, and checks that it reads a file of ours.

    pip install safetensors numpy
    python make.py            writes python.safetensors beside this file
    python make.py FILE       reads FILE, as written by the Go tests, and compares it
"""
import os
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

tensors = {
    "token_embedding": (np.arange(12, dtype=np.float32) / 7 - 1).reshape(4, 3),
    "layers.0.qkv": np.array([[0.0, -0.0, 1e-45, 3.4028235e38], [np.inf, -np.inf, 1.0, -2.5]], dtype=np.float32),
    "output_norm": np.ones(5, dtype=np.float32),
    "scalar": np.array(0.1, dtype=np.float32),
    "empty": np.zeros((0, 3), dtype=np.float32),
}

if len(sys.argv) > 1:
    got = load_file(sys.argv[1])
    assert sorted(got) == sorted(tensors), sorted(got)
    for name, want in tensors.items():
        assert got[name].dtype == want.dtype and got[name].shape == want.shape, name
        assert got[name].tobytes() == want.tobytes(), name
    print("equal")
else:
    save_file(tensors, os.path.join(os.path.dirname(__file__) or ".", "python.safetensors"), metadata={"format": "np"})
