"""The model of docs/numerics.md in PyTorch, for golden.py: an independent second opinion on package arch.

Everything runs in double precision on inputs that are exact float32 values, so a golden is the truth rounded once.
Only the quantisation of weights runs in float32, as the page defines it to the bit.

Gradients come from autograd. A quantiser is straight-through: its value is the quantised one, its derivative is 1. So
products are differentiated at the quantised values of both factors. One exception: attention's weighted mean, whose
value comes from the quantised u, is differentiated at the weights a that were not quantised.
"""
import math

import numpy as np
import torch
import torch.nn.functional as F

FLOAT, FAKE, WEIGHTS_ONLY = "float", "fake_quant", "weights_only"


class Quantiser:
    """Quantises, and remembers how near any value came to a rounding boundary (0.5 is the farthest).

    With a noise generator, what enters a quantiser is first disturbed as float32 arithmetic disturbs it.
    """

    def __init__(self, mode, noise=None):
        self.noise = noise
        self.weights = mode != FLOAT
        self.activations = mode == FAKE
        self.margin = 0.5

    def _round(self, t):
        t = t.detach()
        self.margin = min(self.margin, float((t - torch.floor(t) - 0.5).abs().min()))
        return torch.round(t)  # half to even

    def weight(self, w, spec):
        """Dequantised weights: one scale per row and group of columns."""
        if not self.weights or spec["bits"] == 32:
            return w
        top = {2: 1, 4: 7, 8: 127}[spec["bits"]]
        x = w.detach().numpy().astype(np.float32)
        out = np.zeros_like(x, dtype=np.float64)
        cols = x.shape[1]
        group = spec["group"] or cols
        for a in range(0, cols, group):
            g = x[:, a:a + group]
            m = np.abs(g).max(axis=1, keepdims=True)
            s = m / np.float32(top)
            if spec["scale"] == "f16":
                s = s.astype(np.float16).astype(np.float32)
            zero = (m < np.float32(2.0 ** -100)) | (s == 0)
            t = np.clip(g / np.where(zero, np.float32(1), s), -1000, 1000).astype(np.float32)
            q = self._round(torch.from_numpy(t.astype(np.float64))).numpy().clip(-top, top)
            out[:, a:a + group] = np.where(zero, 0, q * s.astype(np.float64))
        return w + (torch.from_numpy(out) - w).detach()

    def scale(self, x):
        """The activation rule's scale of each vector (last axis)."""
        return x.detach().abs().amax(-1, keepdim=True) / 127

    def activation(self, x):
        """Vectors along the last axis, quantised to 8 bits and dequantised."""
        if self.noise is not None:
            x = x * (1 + 2e-7 * torch.randn(x.shape, generator=self.noise, dtype=x.dtype))
        if not self.activations:
            return x
        s = self.scale(x)
        q = self._round(x * torch.where(s > 0, 1 / s, torch.zeros_like(s))).clamp(-127, 127)
        return x + (q * s - x).detach()


def linear(qz, w, spec, x):
    """y = W x; a weight of 32 bits takes x as it is."""
    if spec["bits"] != 32:
        x = qz.activation(x)
    return x @ qz.weight(w, spec).T


def norm(x, eps, gain=None):
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)
    return y if gain is None else y * gain


def rotate(x, theta):
    """x [..., positions, d]; pairs (i, i + d/2)."""
    n, d = x.shape[-2:]
    i = np.arange(d // 2)
    angle = np.arange(n)[:, None] * theta ** (-2.0 * i / d)
    cos = torch.from_numpy(np.cos(angle).astype(np.float32).astype(np.float64))
    sin = torch.from_numpy(np.sin(angle).astype(np.float32).astype(np.float64))
    a, b = x[..., :d // 2], x[..., d // 2:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def attention(qz, qkv, heads, *, qk_norm, eps, theta, scale=1):
    """qkv [batch, positions, 3*D] before normalisation and rotation -> [batch, positions, D]."""
    b, t, d3 = qkv.shape
    d = d3 // 3 // heads
    q, k, v = (p.view(b, t, heads, d).transpose(1, 2) for p in qkv.split(d3 // 3, -1))
    if qk_norm:
        q, k = norm(q, eps), norm(k, eps)
    q, k = qz.activation(rotate(q, theta)), qz.activation(rotate(k, theta))
    s_v = qz.scale(v).transpose(-1, -2)
    v = qz.activation(v)
    s = q @ k.transpose(-1, -2) * (scale / math.sqrt(d))
    s = s.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -math.inf)
    a = torch.exp(s - s.detach().amax(-1, keepdim=True))
    o = (a @ v) / a.sum(-1, keepdim=True)
    if qz.activations:
        u = qz.activation(a * s_v)  # meets the integer codes v / s_v
        code = v / torch.where(s_v > 0, s_v, torch.ones_like(s_v)).transpose(-1, -2)
        o = o + ((u @ code) / a.sum(-1, keepdim=True) - o).detach()
    return o.transpose(1, 2).reshape(b, t, heads * d)


def gelu(x):
    return x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))


def feed_forward(qz, spec, gate, up, down, h, activation):
    g = linear(qz, gate, spec, h)
    g = torch.relu(g) if activation == "relu" else g * torch.sigmoid(g)
    return linear(qz, down, spec, g * linear(qz, up, spec, h))


def experts(qz, spec, router, gate, up, down, h, activation):
    """Top-1 of E experts over h [n, D] -> (p * ffn_e(h) [n, D], load-balancing loss of Switch Transformers)."""
    e = router.shape[0]
    probability = torch.softmax(h @ router.T, -1)
    choice = probability.argmax(-1)
    fraction = F.one_hot(choice, e).double().mean(0)
    balance = e * (fraction * probability.mean(0)).sum()
    gates, ups, downs = (w.chunk(e) for w in (gate, up, down))
    y = torch.zeros_like(h)
    for j in range(e):
        picked = (choice == j).nonzero()[:, 0]
        if len(picked):
            out = feed_forward(qz, spec, gates[j], ups[j], downs[j], h[picked], activation)
            y = y.index_add(0, picked, probability[picked, j, None] * out)
    return y, balance


def ple_inputs(qz, config, w, x, ids):
    """The per-layer embeddings e_l of every layer: [batch, positions, layers, P]."""
    n_layers, p = config["n_layers"], config["ple_dim"]
    e = linear(qz, w["ple_projection"], spec_of(config, "trunk"), x) / math.sqrt(config["d_model"])
    e = norm(e.unflatten(-1, (n_layers, p)), config["norm_eps"], w["ple_projection_norm"])
    t = qz.weight(w["ple_table"], spec_of(config, "ple_table"))[ids].unflatten(-1, (n_layers, p))
    return (e + t * math.sqrt(p)) / math.sqrt(2)


def ple_mix(qz, spec, gate, output, gain, x, e, eps):
    """What a layer adds to x from its per-layer embedding e."""
    return norm(linear(qz, output, spec, gelu(linear(qz, gate, spec, x)) * e), eps, gain)


def spec_of(config, tensor_class):
    return {**config["quant"]["weights"], **config["quant"].get("classes", {}).get(tensor_class, {})}


def forward(config, w, ids, targets, mode, noise=None):
    """(cross-entropy over the targets >= 0, sum of the layers' load-balancing losses, logits, smallest margin)."""
    qz = Quantiser(mode, noise)
    eps, trunk = config["norm_eps"], spec_of(config, "trunk")
    embedding = w["token_embedding"]
    x = qz.weight(embedding, spec_of(config, "embedding"))[ids]
    if config["ple_dim"]:
        e = ple_inputs(qz, config, w, x, ids)
    balance = torch.zeros((), dtype=torch.float64)
    for i in range(config["n_layers"]):
        part = lambda name: w[f"layers.{i}.{name}"]
        h = norm(x, eps, part("attention_norm"))
        o = attention(qz, linear(qz, part("qkv"), trunk, h), config["n_heads"], qk_norm=config["qk_norm"], eps=eps,
                      theta=config["rope_theta"], scale=config["attention_scale"])
        x = x + linear(qz, part("attention_output"), trunk, o)
        h = norm(x, eps, part("ffn_norm"))
        ffn = [part(n) for n in ("gate", "up", "down")]
        if config["experts"] > 1:
            y, b = experts(qz, trunk, part("router"), *ffn, h.flatten(0, 1), config["activation"])
            x, balance = x + y.view_as(x), balance + b
        else:
            x = x + feed_forward(qz, trunk, *ffn, h, config["activation"])
        if config["ple_dim"]:
            x = x + ple_mix(qz, trunk, part("ple_gate"), part("ple_output"), part("ple_norm"), x, e[:, :, i], eps)
    head, head_class = (embedding, "embedding") if config["tie_embeddings"] else (w["head"], "head")
    logits = linear(qz, head, spec_of(config, head_class), norm(x, eps, w["output_norm"]))
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
    return loss, balance, logits, qz.margin
