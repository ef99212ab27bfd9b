"""The model of docs/numerics.md in PyTorch, written for speed: chiplm's opponent in training.

Weights come in already quantised (quantise_weights), once a step: what they get back as gradient is the gradient of the
weights behind them, which is what straight-through means. The matrices gate and up of a layer are one, gate_up, so that
one product serves both.

Two variants. "faithful" computes what chiplm computes: queries, keys, values and the attention weights are quantised
too. "usual" quantises only weights and what enters a matrix product with them; attention is then PyTorch's own fused
kernel, as most PyTorch code for quantisation-aware training has it.
"""
import math

import torch
import torch.nn.functional as F

FAITHFUL, USUAL = "faithful", "usual"
TINY = 2.0 ** -100  # largest absolute values below it count as zero


def weight_spec(config, name):
    """The rule {bits, group, scale} by which a tensor is quantised; norms are not."""
    part = name.split(".")[-1]
    if part.endswith("norm"):
        return {"bits": 32}
    tensor_class = {"token_embedding": "embedding", "head": "head", "ple_table": "ple_table"}.get(part, "trunk")
    quant = config["quant"]
    return {**quant["weights"], **(quant.get("classes") or {}).get(tensor_class, {})}


def shapes(config):
    """Names and shapes of the parameters."""
    v, d, f, p, n = (config[k] for k in ("vocab_size", "d_model", "d_ff", "ple_dim", "n_layers"))
    out = {"token_embedding": (v, d)}
    if p:
        out.update({"ple_projection": (n * p, d), "ple_projection_norm": (p,), "ple_table": (v, n * p)})
    for i in range(n):
        layer = {"attention_norm": (d,), "qkv": (3 * d, d), "attention_output": (d, d), "ffn_norm": (d,),
                 "gate_up": (2 * f, d), "down": (d, f)}
        if p:
            layer.update({"ple_gate": (p, d), "ple_output": (d, p), "ple_norm": (d,)})
        out.update({f"layers.{i}.{part}": s for part, s in layer.items()})
    out["output_norm"] = (d,)
    if not config["tie_embeddings"]:
        out["head"] = (v, d)
    return out


def quantise_weights(w, spec, dtype=torch.float32):
    """Dequantised weights [rows, cols]: one scale per row and group of columns, the last of which may be shorter."""
    rows, cols = w.shape
    group = spec["group"] or cols
    short = -cols % group
    g = (F.pad(w, (0, short)) if short else w).view(rows, -1, group)
    top = 2 ** (spec["bits"] - 1) - 1
    s = g.abs().amax(-1, keepdim=True).div_(top)
    if spec["scale"] == "f16":
        s = s.half().float()
    q = (g / s.clamp_min(TINY)).round_()
    if spec["scale"] == "f16":
        q.clamp_(-top, top)  # a scale that was rounded down may give one code too many
    return (q.to(dtype) * s.to(dtype)).view(rows, -1)[:, :cols]


def quantise_vectors(x):
    """Codes of vectors along the last axis, 8 bits, and the scale of each vector."""
    m = x.abs().amax(-1, keepdim=True).clamp_min_(TINY)
    return (x * (127 / m)).round_(), m.div_(127)


class Quantised(torch.autograd.Function):
    """Vectors along the last axis, quantised to 8 bits and dequantised; straight-through."""

    @staticmethod
    def forward(ctx, x):
        q, s = quantise_vectors(x)
        return q.mul_(s)

    @staticmethod
    def backward(ctx, grad):
        return grad


class RMSNorm(torch.autograd.Function):
    """x / rms(x), times a gain or not. What autograd would derive takes twice the passes over memory."""

    @staticmethod
    def forward(ctx, x, gain, eps):
        r = (x * x).mean(-1, keepdim=True).add_(eps).rsqrt_()
        n = x * r
        ctx.save_for_backward(n, r, gain)
        return n if gain is None else n * gain

    @staticmethod
    def backward(ctx, grad):
        n, r, gain = ctx.saved_tensors
        d = grad if gain is None else grad * gain
        dx = (d - n * (d * n).mean(-1, keepdim=True)).mul_(r)
        dgain = None if gain is None else (grad * n).flatten(0, -2).sum(0)
        return dx, dgain, None


class QuantisedAttention(torch.autograd.Function):
    """Attention [n, positions, d] whose values and weights are quantised.

    The weights are quantised as they meet the integer codes of the values, that is times the values' scales. Gradients
    see the values dequantised and the weights as they were before quantisation. Rows are taken in blocks, so that much
    of the masked triangle is never computed.
    """

    BLOCK = 128

    @staticmethod
    def forward(ctx, q, k, v, mask, c):
        codes, s = quantise_vectors(v)
        weights, out = [], []
        for a in range(0, q.shape[1], QuantisedAttention.BLOCK):
            b = min(a + QuantisedAttention.BLOCK, q.shape[1])
            p = torch.baddbmm(mask[a:b, :b], q[:, a:b], k[:, :b].mT, alpha=c).softmax(-1)
            u, scale = quantise_vectors(p * s[:, :b].mT)
            out.append(torch.bmm(u, codes[:, :b]).mul_(scale))
            weights.append(p)
        ctx.c = c
        ctx.save_for_backward(q, k, codes * s, *weights)
        return torch.cat(out, 1)

    @staticmethod
    def backward(ctx, grad):
        q, k, v, *weights = ctx.saved_tensors
        dq, dk, dv = [], None, None
        for p in reversed(weights):  # the last block sees every key
            b = p.shape[2]
            a = b - p.shape[1]
            g = grad[:, a:b]
            ds = torch._softmax_backward_data(torch.bmm(g, v[:, :b].mT), p, -1, p.dtype)
            dq.insert(0, torch.bmm(ds, k[:, :b]))
            if dk is None:
                dk, dv = torch.bmm(ds.mT, q[:, a:b]), torch.bmm(p.mT, g)
            else:
                dk[:, :b].baddbmm_(ds.mT, q[:, a:b])
                dv[:, :b].baddbmm_(p.mT, g)
        return torch.cat(dq, 1).mul_(ctx.c), dk.mul_(ctx.c), dv, None, None


class Model:
    """The forward pass of a configuration; quantised: whether activations are."""

    def __init__(self, config, variant, quantised=True, dtype=torch.float32):
        self.config, self.dtype, self.quantised = config, dtype, quantised
        self.faithful = variant == FAITHFUL and quantised
        n, d = config["context_length"], config["d_model"] // config["n_heads"]
        self.c = config.get("attention_scale", 1) * d ** -0.5
        i = torch.arange(d // 2, dtype=torch.float64)
        angle = torch.arange(n, dtype=torch.float64)[:, None] * config["rope_theta"] ** (-2 * i / d)
        cos, sin = angle.cos().float().to(dtype), angle.sin().float().to(dtype)
        self.cos, self.sin = torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1)
        self.mask = torch.full((n, n), -math.inf, dtype=dtype).triu(1)
        self.float_head = weight_spec(config, "head")["bits"] == 32 and not config["tie_embeddings"]

    def linear(self, w, x):
        return F.linear(Quantised.apply(x) if self.quantised else x, w)

    def norm(self, x, gain=None):
        return RMSNorm.apply(x, gain, self.config["norm_eps"])

    def attention(self, qkv):
        """qkv [batch, positions, 3*d_model] -> [batch, positions, d_model]."""
        b, t, _ = qkv.shape
        heads = self.config["n_heads"]
        qkv = qkv.view(b, t, 3, heads, -1).permute(2, 0, 3, 1, 4).contiguous()
        qk, v = qkv[:2], qkv[2]
        if self.config["qk_norm"]:
            qk = self.norm(qk)
        a, c = qk.chunk(2, -1)
        qk = torch.addcmul(qk * self.cos[:t], torch.cat([c, a], -1), self.sin[:t])
        if self.faithful:
            q, k = Quantised.apply(qk).flatten(1, 2)
            o = QuantisedAttention.apply(q, k, v.flatten(0, 1), self.mask[:t, :t], self.c).unflatten(0, (b, heads))
        else:
            o = F.scaled_dot_product_attention(qk[0], qk[1], v, is_causal=True, scale=self.c)
        return o.transpose(1, 2).reshape(b, t, -1)

    def per_layer(self, w, x, ids):
        """The per-layer embeddings: for each layer [batch, positions, ple_dim]."""
        c = self.config
        n, p = c["n_layers"], c["ple_dim"]
        e = self.linear(w["ple_projection"], x) * c["d_model"] ** -0.5
        e = self.norm(e.unflatten(-1, (n, p)), w["ple_projection_norm"])
        t = F.embedding(ids, w["ple_table"]).unflatten(-1, (n, p))
        return ((e + t * p ** 0.5) * 0.5 ** 0.5).unbind(-2)

    def loss(self, w, ids, targets):
        """Mean cross-entropy over the targets >= 0 for ids [batch, positions]."""
        c = self.config
        x = F.embedding(ids, w["token_embedding"])
        e = self.per_layer(w, x, ids) if c["ple_dim"] else None
        for i in range(c["n_layers"]):
            part = lambda name: w[f"layers.{i}.{name}"]
            h = self.norm(x, part("attention_norm"))
            x = x + self.linear(part("attention_output"), self.attention(self.linear(part("qkv"), h)))
            h = self.norm(x, part("ffn_norm"))
            gate, up = self.linear(part("gate_up"), h).chunk(2, -1)
            gate = F.relu(gate) if c["activation"] == "relu" else F.silu(gate)
            x = x + self.linear(part("down"), gate * up)
            if c["ple_dim"]:
                g = F.gelu(self.linear(part("ple_gate"), x), approximate="tanh")
                x = x + self.norm(self.linear(part("ple_output"), g * e[i]), part("ple_norm"))
        h = self.norm(x, w["output_norm"])
        head = w["token_embedding" if c["tie_embeddings"] else "head"]
        logits = F.linear(h, head) if self.float_head else self.linear(head, h)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


class Trainer:
    """Master weights, their quantised copies, and AdamW."""

    def __init__(self, config, weights, variant, *, mode="fake_quant", dtype=torch.float32, compiled=False, options=None):
        """weights: {name: float32 tensor} with the names of shapes(); options: AdamW's, clip included."""
        o = options or config["train"]
        self.model = Model(config, variant, quantised=mode == "fake_quant", dtype=dtype)
        self.master = {n: w.clone().requires_grad_() for n, w in weights.items()}
        self.spec = {n: weight_spec(config, n) for n in weights}
        self.used = {n: w.to(dtype, copy=True).detach().requires_grad_() for n, w in weights.items()}
        self.quantised = [n for n, s in self.spec.items() if s["bits"] != 32 and mode != "float"]
        self.clip = o["clip"]
        groups = [{"params": [p for p in self.master.values() if p.dim() == 2], "weight_decay": o["weight_decay"]},
                  {"params": [p for p in self.master.values() if p.dim() == 1], "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"], fused=True)
        self.loss, self.quantise = self.model.loss, self._quantise
        if compiled:
            # Without this, inductor leaves out the rounding of scales to f16.
            exact = {"emulate_precision_casts": True}
            self.loss, self.quantise = (torch.compile(f, options=exact) for f in (self.loss, self.quantise))

    def _quantise(self):
        return [quantise_weights(self.master[n], self.spec[n], self.model.dtype) for n in self.quantised]

    def load(self):
        """Puts the master weights, quantised, where the model reads them."""
        with torch.no_grad():
            fresh = {**self.master, **dict(zip(self.quantised, self.quantise()))}
            torch._foreach_copy_(list(self.used.values()), list(fresh.values()))

    def gradient(self, micro_batches):
        """The mean loss; the mean gradient is left in .grad of the quantised copies."""
        self.load()
        for w in self.used.values():
            w.grad = None
        total = 0.0
        for ids, targets in micro_batches:
            loss = self.loss(self.used, ids, targets) / len(micro_batches)
            loss.backward()
            total += loss.item()
        return total

    def step(self, micro_batches):
        """One optimiser step over [(ids, targets)], each [batch, positions]; the mean loss before it."""
        loss = self.gradient(micro_batches)
        for n, w in self.master.items():
            w.grad = self.used[n].grad
        torch.nn.utils.clip_grad_norm_(self.master.values(), self.clip, foreach=True)
        self.optimiser.step()
        return loss
