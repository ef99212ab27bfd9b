"""Holds model.py to the second opinion on the model that the goldens of package arch come from."""
import base64
import importlib.util
import json
import pathlib

import numpy as np
import torch

import model

TESTDATA = pathlib.Path(__file__).resolve().parents[2] / "arch" / "testdata"
TOLERANCE = 1e-5   # as the Go tests have it: of a loss, relative; of a gradient, over its tensor's largest value
STEPS = 5e-5       # of a loss after AdamW steps, relative: rounding adds up from step to step
DOUBLE = 1e-9      # of a loss and of gradients in double precision
CLEAR = 1e-10      # codes that double precision stays away from rounding boundaries


def reference():
    """The reference model, arch/testdata/model.py."""
    spec = importlib.util.spec_from_file_location("reference", TESTDATA / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fused(config, tensors):
    """The reference's tensors, gate and up joined."""
    out = dict(tensors)
    for i in range(config["n_layers"]):
        out[f"layers.{i}.gate_up"] = torch.cat([out.pop(f"layers.{i}.gate"), out.pop(f"layers.{i}.up")])
    assert {n: tuple(t.shape) for n, t in out.items()} == model.shapes(config)
    return out


def decode(text):
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), dtype="<f4").copy())


def worst(got, want):
    """The largest difference of two sets of tensors, over the largest absolute value of each tensor."""
    return max(float((got[n].grad.double() - want[n]).abs().max() / want[n].abs().max()) for n in want)


class Report:
    def __init__(self):
        self.failures = 0

    def line(self, what, difference, tolerance):
        good = difference <= tolerance  # not of a NaN
        self.failures += not good
        print(f"{'ok  ' if good else 'FAIL'}  {what:<60} {difference:8.1e}  (at most {tolerance:.0e})")


def goldens(report, compiled):
    """Loss, gradients and ten AdamW steps of the small models of models.json, in float32.

    The usual variant is the same model as chiplm's where activations are not quantised, and only there.
    """
    for golden in json.loads((TESTDATA / "models.json").read_text())["models"]:
        config = golden["config"]
        if config["experts"] > 1:
            continue  # the opponent has no experts, nor has combo
        plain = reference_shapes(config)
        read = lambda tensors: fused(config, {n: decode(tensors[n]).view(s) for n, s in plain.items()})
        weights = read(golden["weights"])
        shape = golden["batch"], golden["positions"]
        batch = [(torch.tensor(golden["ids"]).view(shape), torch.tensor(golden["targets"]).view(shape))]
        for mode, want in golden["modes"].items():
            for variant in (model.FAITHFUL,) if mode == "fake_quant" else (model.FAITHFUL, model.USUAL):
                name = f"{golden['name']}, {mode}, {variant}"
                t = model.Trainer(config, weights, variant, mode=mode, compiled=compiled, options=golden["optimizer"])
                loss = t.gradient(batch)
                report.line(f"{name}: loss", abs(loss / want["loss"] - 1), TOLERANCE)
                if "gradients" in want:
                    report.line(f"{name}: gradients", worst(t.used, read(want["gradients"])), TOLERANCE)
                losses = [t.step(batch) for _ in want["losses"]]
                difference = max(abs(a / b - 1) for a, b in zip(losses, want["losses"]))
                report.line(f"{name}: losses of {len(losses)} steps", difference, STEPS)


def reference_shapes(config):
    """model.shapes with gate and up apart."""
    out = {}
    for n, s in model.shapes(config).items():
        if n.endswith(".gate_up"):
            half = s[0] // 2, s[1]
            out[n.replace("gate_up", "gate")] = out[n.replace("gate_up", "up")] = half
        else:
            out[n] = s
    return out


def reference_loss(config, weights, ids, targets, variant):
    """The reference's loss, and how near a value in a vector came to a rounding boundary, in codes."""
    ref = reference()

    class Quantiser(ref.Quantiser):
        def weight(self, w, spec):  # both sides round weights alike, in float32: their ties do not count
            margin = self.margin
            w = super().weight(w, spec)
            self.margin = margin
            return w

    exact, ref.Quantiser = ref.attention, Quantiser
    if variant == model.USUAL:
        ref.attention = lambda qz, *args, **kw: exact(Quantiser(ref.FLOAT), *args, **kw)
    loss, _, _, margin = ref.forward(config, weights, ids, targets, ref.FAKE)
    return loss, margin


def whole(report, config, seed):
    """Loss and gradients of the benchmark's own configuration against the reference, both in double precision.

    What attention puts out are integers times a scale. So a quotient of two of them may lie on a rounding boundary
    exactly, and the last bit decides: data in which that happens are passed over.
    """
    shape = 1, min(160, config["context_length"])  # more than one of the blocks that attention takes rows in
    while True:
        rng = np.random.default_rng(seed)
        plain = {}
        for n, s in reference_shapes(config).items():
            a = 1 + 0.2 * rng.normal(size=s) if len(s) == 1 else rng.normal(size=s) / s[1] ** 0.5
            plain[n] = torch.tensor(a, dtype=torch.float32)
        ids, targets = (torch.tensor(rng.integers(config["vocab_size"], size=shape)) for _ in range(2))
        lines = []
        for variant in model.FAITHFUL, model.USUAL:
            leaves = {n: t.double().requires_grad_() for n, t in plain.items()}
            loss, margin = reference_loss(config, leaves, ids, targets, variant)
            if margin < CLEAR:
                break
            loss.backward()
            t = model.Trainer(config, fused(config, plain), variant, dtype=torch.float64)
            name = f"{config['name']} in double precision, {variant}"
            lines.append((f"{name}: loss", abs(t.gradient([(ids, targets)]) / loss.item() - 1), DOUBLE))
            want = fused(config, {n: p.grad for n, p in leaves.items()})
            lines.append((f"{name}: gradients", worst(t.used, want), DOUBLE))
        else:
            for line in lines:
                report.line(*line)
            return
        seed += 1


def main(config, compiled):
    """The number of comparisons that failed; config is that of the benchmark."""
    report = Report()
    goldens(report, compiled)
    whole(report, config, seed=1)
    return report.failures
