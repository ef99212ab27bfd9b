#!/usr/bin/env python3
"""Writes operations.json and models.json: what PyTorch makes of the model of docs/numerics.md (see model.py).

    python3 golden.py           (PyTorch 1.13 or later; the tests themselves need no Python)

operations.json: {"cases": [{operation, mode, about: {sizes and settings}, tensors: {name: {shape, data}}}]}.
    y is the output, dy the gradient that flows in, and d<name> the gradient of the sum of y*dy by that input.
models.json: {"models": [{name, config, batch, positions, ids, targets, optimizer, weights: {name: data},
    modes: {mode: {loss, balance, margin, gradients: {name: data}, losses}}}]}.
    "losses" are those of ten AdamW steps on the same batch, each before its step; gradients are of loss + router_aux *
    balance. "margin" is the smallest distance of a value to a rounding boundary of its quantiser in the first
    forward pass, in codes. Seeds are searched until float32 arithmetic stays clear of every boundary there, and until
    runs with rounding noise keep all ten losses.
Data are base64 of little-endian float32, row after row. Targets of -1 are not scored.
"""
import base64
import json
import pathlib
import sys

import numpy as np
import torch

sys.dont_write_bytecode = True
import model
from model import FAKE, FLOAT, WEIGHTS_ONLY

HERE = pathlib.Path(__file__).parent
MARGIN = 5e-5   # codes; float32 reaches a few 1e-5 for codes near 127
STABLE = 2e-5   # largest relative difference of a loss between a run and its twins with rounding noise


def b64(x):
    return base64.b64encode(np.ascontiguousarray(x.detach().numpy(), dtype="<f4").tobytes()).decode()


def leaf(array):
    """A float64 tensor of exact float32 values that wants a gradient."""
    return torch.tensor(np.asarray(array, dtype=np.float32), dtype=torch.float64, requires_grad=True)


# Operations


def record(operation, mode, about, inputs, compute, rng_seed):
    """One case; inputs is a function of a random generator, searched until the rounding margin is met."""
    for seed in range(rng_seed, rng_seed + 400):
        rng = np.random.default_rng(seed)
        leaves = {n: leaf(a) for n, a in inputs(rng).items()}
        qz = model.Quantiser(mode)
        y = compute(qz, **leaves)
        if qz.margin >= MARGIN:
            break
    else:
        raise SystemExit(f"{operation}: no seed meets the margin")
    dy = rng.normal(size=y.shape)
    if operation == "experts":
        dy[-1] = 1  # the load-balancing loss is part of the loss
    dy = leaf(dy)
    (y * dy).sum().backward()
    tensors = {**leaves, "y": y, "dy": dy, **{"d" + n: t.grad for n, t in leaves.items()}}
    return {"operation": operation, "mode": mode, "about": about,
            "tensors": {n: {"shape": list(t.shape), "data": b64(t)} for n, t in tensors.items()}}


def operations():
    cases = []

    def add(operation, about, inputs, compute, modes=(FLOAT, FAKE)):
        for mode in modes:
            cases.append(record(operation, mode, about, inputs, compute, 1000 * (len(cases) + 1)))

    eps = 1e-6
    # One element needs a large eps: with a small one its gradient is the difference of two nearly equal numbers.
    for rows, n, e in (5, 13, eps), (1, 1, 0.5), (3, 16, eps):
        add("rmsnorm", {"rows": rows, "n": n, "eps": e},
            lambda r: {"x": r.normal(size=(rows, n)), "gain": 1 + 0.3 * r.normal(size=n)},
            lambda qz, x, gain: model.norm(x, e, gain), (FLOAT,))

    for rows, outs, cols, bits, group, scale in ((7, 9, 35, 4, 32, "f32"), (1, 1, 1, 4, 0, "f32"), (3, 5, 70, 2, 64, "f16"),
                                                 (4, 6, 11, 8, 0, "f16"), (3, 4, 10, 32, 0, "f32")):
        spec = {"bits": bits, "group": group, "scale": scale}
        add("linear", {"rows": rows, "outs": outs, "cols": cols, **spec},
            lambda r: {"x": r.normal(size=(rows, cols)), "w": r.normal(size=(outs, cols)) / cols ** 0.5},
            lambda qz, x, w: model.linear(qz, w, spec, x))

    for b, t, heads, d, qk_norm in (2, 5, 3, 6, True), (1, 1, 1, 2, True), (1, 9, 1, 4, False):
        about = {"batch": b, "positions": t, "heads": heads, "d": d, "qk_norm": qk_norm, "eps": eps, "theta": 10000.0}
        add("attention", about,
            lambda r: {"qkv": r.normal(size=(b, t, 3 * heads * d))},
            lambda qz, qkv: model.attention(qz, qkv, heads, qk_norm=qk_norm, eps=eps, theta=10000.0))

    spec = {"bits": 4, "group": 32, "scale": "f32"}
    for activation in "relu", "swiglu":
        rows, d, f = 5, 7, 34
        add("feed_forward", {"rows": rows, "d": d, "f": f, "activation": activation, **spec},
            lambda r: {"x": r.normal(size=(rows, d)), "gate": r.normal(size=(f, d)) / d ** 0.5,
                       "up": r.normal(size=(f, d)) / d ** 0.5, "down": r.normal(size=(d, f)) / f ** 0.5},
            lambda qz, x, gate, up, down: model.feed_forward(qz, spec, gate, up, down, x, activation))

    rows, d, p = 5, 9, 3
    add("ple_mix", {"rows": rows, "d": d, "p": p, "eps": eps, **spec},
        lambda r: {"x": r.normal(size=(rows, d)), "e": r.normal(size=(rows, p)), "gate": r.normal(size=(p, d)) / d ** 0.5,
                   "output": r.normal(size=(d, p)) / p ** 0.5, "gain": 1 + 0.3 * r.normal(size=d)},
        lambda qz, x, e, gate, output, gain: model.ple_mix(qz, spec, gate, output, gain, x, e, eps))

    rows, d, f, e = 11, 6, 5, 3
    aux = 0.01
    add("experts", {"rows": rows, "d": d, "f": f, "experts": e, "activation": "relu", "aux": aux, **spec},
        lambda r: {"x": r.normal(size=(rows, d)), "router": r.normal(size=(e, d)) / d ** 0.5,
                   "gate": r.normal(size=(e * f, d)) / d ** 0.5, "up": r.normal(size=(e * f, d)) / d ** 0.5,
                   "down": r.normal(size=(e * d, f)) / f ** 0.5},
        # The last value of y is the weighted load-balancing loss.
        lambda qz, x, router, gate, up, down: (lambda y, balance: torch.cat([y.flatten(), aux * balance[None]]))(
            *model.experts(qz, spec, router, gate, up, down, x, "relu")))

    ids = [3, 0, 6, 3, 3]
    add("embedding", {"vocab": 7, "d": 5, "ids": ids, **spec},
        lambda r: {"table": r.normal(size=(7, 5))},
        lambda qz, table: qz.weight(table, spec)[ids])

    targets = [4, 0, -1, 10, 4]
    add("head", {"rows": 5, "vocab": 11, "d": 6, "targets": targets, **spec},
        lambda r: {"x": r.normal(size=(5, 6)), "w": r.normal(size=(11, 6))},
        lambda qz, x, w: torch.nn.functional.cross_entropy(model.linear(qz, w, spec, x), torch.tensor(targets),
                                                           ignore_index=-1)[None])
    return cases


# Models

BASE = {"context_length": 16, "qk_norm": True, "attention_scale": 1.0, "rope_theta": 10000.0, "norm_eps": 1e-6, "experts": 0, "ple_dim": 0}
OPTIMIZER = {"lr": 0.005, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "clip": 1.0}


def quant(weights, **classes):
    return {"weights": weights, "activations": {"bits": 8}, "classes": classes, "start_step": 0}


CONFIGS = [
    {**BASE, "name": "dense", "vocab_size": 37, "d_model": 20, "n_layers": 2, "n_heads": 2, "d_ff": 36, "ple_dim": 6,
     "tie_embeddings": True, "activation": "relu",
     "quant": quant({"bits": 4, "group": 32, "scale": "f32"}, embedding={"bits": 8, "scale": "f16"},
                    ple_table={"bits": 2, "group": 0})},
    {**BASE, "name": "swiglu", "vocab_size": 29, "d_model": 34, "n_layers": 1, "n_heads": 1, "d_ff": 5,
     "tie_embeddings": False, "activation": "swiglu",
     "quant": quant({"bits": 4, "group": 32, "scale": "f16"}, head={"bits": 32, "scale": "f32"})},
    {**BASE, "name": "experts", "vocab_size": 23, "d_model": 12, "n_layers": 2, "n_heads": 2, "d_ff": 9, "experts": 3,
     "tie_embeddings": True, "activation": "relu", "qk_norm": False,
     "quant": quant({"bits": 4, "group": 0, "scale": "f32"}), "train": {"router_aux": 0.05}},
]


def shapes(c):
    """Names and shapes of the parameters: an independent reading of the tensor table."""
    v, d, f, p, e = c["vocab_size"], c["d_model"], c["d_ff"], c["ple_dim"], max(c["experts"], 1)
    out = {"token_embedding": (v, d)}
    if p:
        n = c["n_layers"] * p
        out.update(ple_projection=(n, d), ple_projection_norm=(p,), ple_table=(v, n))
    for i in range(c["n_layers"]):
        layer = {"attention_norm": (d,), "qkv": (3 * d, d), "attention_output": (d, d), "ffn_norm": (d,)}
        if e > 1:
            layer["router"] = (e, d)
        layer.update(gate=(e * f, d), up=(e * f, d), down=(e * d, f))
        if p:
            layer.update(ple_gate=(p, d), ple_output=(d, p), ple_norm=(d,))
        out.update({f"layers.{i}.{n}": s for n, s in layer.items()})
    out["output_norm"] = (d,)
    if not c["tie_embeddings"]:
        out["head"] = (v, d)
    return out


def initial(c, rng):
    w = {n: 1 + 0.2 * rng.normal(size=s) if len(s) == 1 else rng.normal(size=s) / s[1] ** 0.5 for n, s in shapes(c).items()}
    w["token_embedding"] *= 2
    return {n: np.float32(a) for n, a in w.items()}


def training(c, w, ids, targets, mode, noise=None):
    """The first pass's results and the losses of ten AdamW steps."""
    aux = c.get("train", {}).get("router_aux", 0.0)
    params = {n: leaf(a) for n, a in w.items()}
    o = OPTIMIZER
    optimiser = torch.optim.AdamW(
        [{"params": [p for p in params.values() if p.dim() == 2], "weight_decay": o["weight_decay"]},
         {"params": [p for p in params.values() if p.dim() == 1], "weight_decay": 0.0}],
        lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"])
    first, losses = None, []
    for _ in range(10):
        optimiser.zero_grad()
        loss, balance, _, margin = model.forward(c, params, ids, targets, mode, noise)
        (loss + aux * balance).backward()
        losses.append(float(loss))
        if first is None:
            first = {"loss": float(loss), "balance": float(balance), "margin": margin,
                     "gradients": {n: b64(p.grad) for n, p in params.items()}}
        torch.nn.utils.clip_grad_norm_(list(params.values()), o["clip"])
        optimiser.step()
    return {**first, "losses": losses}


def stable(c, w, ids, targets, mode, run):
    """Whether runs with rounding noise keep the losses: one code that flips early sends a tiny model elsewhere."""
    for seed in range(12):
        twin = training(c, w, ids, targets, mode, torch.Generator().manual_seed(seed))
        if max(abs(a / b - 1) for a, b in zip(twin["losses"], run["losses"])) > STABLE:
            return False
    return True


def whole(c, number):
    batch, positions = 2, 5
    for seed in range(10000 * number, 10000 * number + 1000):
        rng = np.random.default_rng(seed)
        w = initial(c, rng)
        ids = torch.tensor(rng.integers(c["vocab_size"], size=(batch, positions)))
        targets = torch.tensor(rng.integers(c["vocab_size"], size=(batch, positions)))
        targets[0, 2] = targets[1, -1] = -1
        params = {n: torch.tensor(a, dtype=torch.float64) for n, a in w.items()}
        if any(model.forward(c, params, ids, targets, m)[3] < MARGIN for m in (FAKE, WEIGHTS_ONLY)):
            continue
        modes = {}
        for mode in FAKE, WEIGHTS_ONLY, FLOAT:
            modes[mode] = training(c, w, ids, targets, mode)
            if not stable(c, w, ids, targets, mode, modes[mode]):
                break
        else:
            break
    else:
        raise SystemExit(f"{c['name']}: no seed will do")
    del modes[WEIGHTS_ONLY]["gradients"]  # the losses of ten steps say enough, and the file stays small
    return {"name": c["name"], "config": c, "batch": batch, "positions": positions, "ids": ids.flatten().tolist(),
            "targets": targets.flatten().tolist(), "optimizer": OPTIMIZER, "seed": seed,
            "weights": {n: base64.b64encode(a.astype("<f4").tobytes()).decode() for n, a in w.items()}, "modes": modes}


def write(name, key, entries):
    lines = ",\n".join(json.dumps(e) for e in entries)
    (HERE / name).write_text('{"%s": [\n%s\n]}\n' % (key, lines))


def main():
    torch.set_num_threads(1)
    write("operations.json", "cases", operations())
    write("models.json", "models", [whole(c, i + 1) for i, c in enumerate(CONFIGS)])


if __name__ == "__main__":
    main()
