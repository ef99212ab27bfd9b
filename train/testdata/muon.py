#!/usr/bin/env python3
"""Writes muon.json: what torch.optim.Muon makes of given gradients, for the tests of package train.

    python3 muon.py            (PyTorch 2.9 or later; the tests themselves need no Python)

PyTorch computes the Newton-Schulz steps in bfloat16. Here its own code runs in double, by replacing the conversion, on
inputs that are exact float32 values; so the expected parameters are the truth rounded once. The case "rows" adds what
torch.optim.Muon lacks, the normalisation of rows (NorMuon), written out in numpy.

muon.json: {"cases": [{name, momentum, steps, weight_decay, beta2 (0: no rows), lr: [per step],
"params": [{name, shape, parts, initial, grads: [per step], expected: [per step]}]}]}.
Arrays are base64 of little-endian float32, row after row. "parts": a parameter that holds so many matrices.
"""
import base64
import json
import pathlib

import numpy as np
import torch

torch.bfloat16 = torch.float64

SHAPES = {"square": ((8, 8), 1), "wide": ((5, 12), 1), "tall": ((12, 5), 1), "three": ((12, 6), 3), "row": ((1, 5), 1)}
STEPS = 5


def b64(x):
    return base64.b64encode(np.asarray(x, dtype="<f4").tobytes()).decode()


def schulz(g, steps):
    x = g / max(np.linalg.norm(g), 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(steps):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T if tall else x


def normuon(w, grads, lrs, momentum, steps, weight_decay, beta2):
    m, v, out = np.zeros_like(w), np.zeros(w.shape[0]), []
    for t, (g, lr) in enumerate(zip(grads, lrs)):
        m = m + (g - m) * (1 - momentum)
        o = schulz(g + (m - g) * momentum, steps)
        v = beta2 * v + (1 - beta2) * (o * o).mean(axis=1)
        size = np.linalg.norm(o)
        o = o / (np.sqrt(v / (1 - beta2 ** (t + 1))) + 1e-7)[:, None]
        o *= size / np.linalg.norm(o)
        w = w * (1 - lr * weight_decay) - lr * max(1, w.shape[0] / w.shape[1]) ** 0.5 * o
        out.append(w)
    return out


def torch_muon(w, grads, lrs, momentum, steps, weight_decay):
    p = torch.tensor(w, dtype=torch.float64, requires_grad=True)
    o = torch.optim.Muon([p], lr=lrs[0], weight_decay=weight_decay, momentum=momentum, nesterov=True, ns_steps=steps)
    out = []
    for g, lr in zip(grads, lrs):
        p.grad = torch.tensor(g, dtype=torch.float64)
        o.param_groups[0]["lr"] = lr
        o.step()
        out.append(p.detach().numpy().copy())
    return out


def case(name, seed, lr, momentum=0.95, steps=5, weight_decay=0.05, beta2=0.0, scale=0.1):
    rng = np.random.default_rng(seed)
    params = []
    for n, (shape, parts) in SHAPES.items():
        f32 = lambda x: np.float64(np.float32(x))
        start = f32(rng.normal(size=shape))
        grads = [f32(rng.normal(size=shape) * scale * (1 + 99 * (t == 2))) for t in range(STEPS)]
        rows = shape[0] // parts
        pieces = []
        for i in range(parts):
            cut = slice(i * rows, (i + 1) * rows)
            args = (start[cut], [g[cut] for g in grads], lr, momentum, steps, weight_decay)
            pieces.append(normuon(*args, beta2) if beta2 else torch_muon(*args))
        expected = [np.concatenate([p[t] for p in pieces]) for t in range(STEPS)]
        params.append({"name": n, "shape": list(shape), "parts": parts, "initial": b64(start),
                       "grads": [b64(g) for g in grads], "expected": [b64(e) for e in expected]})
    return {"name": name, "momentum": momentum, "steps": steps, "weight_decay": weight_decay, "beta2": beta2, "lr": lr,
            "params": params}


def main():
    constant = [0.02] * STEPS
    cases = [case("plain", 1, constant, weight_decay=0.0), case("decay", 2, constant),
             case("warm-up", 3, [0.01, 0.02, 0.03, 0.02, 0.01]), case("three steps", 4, constant, steps=3, momentum=0.8),
             case("tiny gradients", 5, constant, scale=1e-6), case("rows", 6, constant, beta2=0.95)]
    w = np.random.default_rng(7).normal(size=(9, 13))  # both forms of the reference agree where they should
    g = [np.random.default_rng(t).normal(size=w.shape) for t in range(STEPS)]
    same = torch_muon(w, g, constant, 0.95, 5, 0.05)
    mine, m = w, np.zeros_like(w)
    for t in range(STEPS):
        m = m + (g[t] - m) * 0.05
        mine = mine * (1 - 0.02 * 0.05) - 0.02 * schulz(g[t] + (m - g[t]) * 0.95, 5)
        assert np.allclose(mine, same[t], atol=1e-9), t
    lines = ",\n".join(json.dumps(c) for c in cases)
    pathlib.Path(__file__).with_name("muon.json").write_text('{"cases": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
