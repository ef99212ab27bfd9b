#!/usr/bin/env python3
"""Writes adamw.json: what torch.optim.AdamW makes of given gradients, for the tests of package train.

    python3 adamw.py            (PyTorch 1.13 or later; the tests themselves need no Python)

The optimiser runs in double precision on inputs that are exact float32 values, so the expected parameters are the
truth rounded once, and a test's tolerance covers the rounding of the float32 optimiser alone.

adamw.json: {"cases": [{name, beta1, beta2, eps, weight_decay, clip, lr: [per step], norms: [per step],
"params": [{name, shape, decay, initial, grads: [per step], expected: [per step]}]}]}.
Arrays are base64 of little-endian float32, row after row. "norms" are the global gradient norms before clipping.
"clip" is the largest global norm (0: no clipping), with the field's rule: gradients times min(1, clip / (norm + 1e-6)).
"decay" says whether weight_decay applies (decoupled: w -= lr * weight_decay * w): on matrices, not on vectors.
"""
import base64
import json
import pathlib

import numpy as np
import torch

SHAPES = {"matrix": (5, 7), "gain": (9,), "row": (1, 6), "single": (1,), "tall": (33, 3)}
STEPS = 8


def f32(x):
    return np.asarray(x, dtype=np.float32)


def b64(x):
    return base64.b64encode(f32(x).astype("<f4").tobytes()).decode()


def gradients(rng, scale):
    """Gradients with elements that are always zero, zero at first, and ten orders of magnitude apart."""
    steps = []
    for t in range(STEPS):
        g = {n: f32(rng.normal(size=s) * scale) for n, s in SHAPES.items()}
        g["matrix"][0, :] = 0
        if t < 3:
            g["gain"][:4] = 0
        g["tall"][:, 1] *= np.float32(1e-7)
        g["tall"][:, 2] *= np.float32(1 + 99 * (t % 3 == 1))  # spikes, so that clipping changes from step to step
        steps.append(g)
    return steps


def case(name, seed, *, lr, scale, clip=0.0, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1):
    rng = np.random.default_rng(seed)
    start = {n: f32(rng.normal(size=s)) for n, s in SHAPES.items()}
    grads = gradients(rng, scale)
    params = {n: torch.tensor(w, dtype=torch.float64, requires_grad=True) for n, w in start.items()}
    optimiser = torch.optim.AdamW(
        [{"params": [p for p in params.values() if p.dim() == 2], "weight_decay": weight_decay},
         {"params": [p for p in params.values() if p.dim() == 1], "weight_decay": 0.0}],
        lr=lr[0], betas=(beta1, beta2), eps=eps)
    expected, norms = {n: [] for n in params}, []
    for t in range(STEPS):
        for n, p in params.items():
            p.grad = torch.tensor(grads[t][n], dtype=torch.float64)
        norms.append(float(torch.nn.utils.clip_grad_norm_(list(params.values()), clip if clip > 0 else float("inf"))))
        for group in optimiser.param_groups:
            group["lr"] = lr[t]
        optimiser.step()
        for n, p in params.items():
            expected[n].append(b64(p.detach().numpy()))
    return {
        "name": name, "beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": weight_decay, "clip": clip,
        "lr": list(lr), "norms": norms,
        "params": [{"name": n, "shape": list(SHAPES[n]), "decay": len(SHAPES[n]) == 2, "initial": b64(start[n]),
                    "grads": [b64(g[n]) for g in grads], "expected": expected[n]} for n in SHAPES],
    }


def main():
    constant = [0.005] * STEPS
    warm = [0.001 * (t + 1) for t in range(4)] + [0.004 * (1 - t / 4) for t in range(4)]
    cases = [
        case("plain", 1, lr=constant, scale=0.1, weight_decay=0.0),
        case("decay", 2, lr=constant, scale=0.1),
        case("clipped", 3, lr=constant, scale=0.1, clip=1.0),  # clips at some steps and not at others
        case("clipped hard, warm-up and decay of lr", 4, lr=warm, scale=1.0, clip=0.5),
        case("tiny gradients: eps decides", 5, lr=constant, scale=1e-8),
        case("other betas", 6, lr=constant, scale=0.1, beta1=0.8, beta2=0.999, eps=1e-6, clip=1.0),
    ]
    clipped = [n > 1 for n in cases[2]["norms"]]
    assert any(clipped) and not all(clipped), cases[2]["norms"]
    out = pathlib.Path(__file__).with_name("adamw.json")
    lines = ",\n".join(json.dumps(c) for c in cases)
    out.write_text('{"cases": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
