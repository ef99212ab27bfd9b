#!/usr/bin/env python3
"""Times PyTorch training a chiplm model and prints one JSON object; or, with --check, compares the two models.

    python train.py --threads 2 --variant usual
    python train.py --threads 2 --variant faithful --compile
    python train.py --check --compile
"""
import argparse
import json
import os
import pathlib
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent


def arguments():
    p = argparse.ArgumentParser(description="Time PyTorch training a chiplm model.")
    p.add_argument("--config", default=HERE.parents[1] / "configs" / "combo.yaml", type=pathlib.Path,
                   help="model file that inherits nothing and gives every key (default: combo.yaml)")
    p.add_argument("--variant", choices=["faithful", "usual"], default="faithful", help="see model.py")
    p.add_argument("--compile", action="store_true", help="run through torch.compile (inductor) instead of eagerly")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--micro-batch", type=int, help="sequences at a time (default: the model file's)")
    p.add_argument("--warmup", type=int, default=2, help="steps before the clock starts")
    p.add_argument("--steps", type=int, default=5, help="steps timed")
    p.add_argument("--check", action="store_true", help="compare the model with chiplm's goldens and exit")
    return p.parse_args()


def initial(shapes, torch):
    """The weights chiplm starts with, but for the random numbers."""
    out = {}
    for name, shape in shapes.items():
        part = name.split(".")[-1]
        std = 0.02 if part in ("token_embedding", "head", "ple_table") else shape[-1] ** -0.5
        if part in ("attention_output", "down"):
            std = 0.0
        out[name] = torch.ones(shape) if part.endswith("norm") else torch.randn(shape) * std
    return out


def main():
    args = arguments()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)  # read once, when PyTorch is loaded
    import torch
    import yaml

    import model

    torch.set_num_threads(args.threads)
    config = yaml.safe_load(args.config.read_text())
    if config.get("ngram_rows", 0) > 0:
        sys.exit(f"train.py: {args.config}: ngram_rows: {config['ngram_rows']}: this model has no bigram table; give 0")
    if config["experts"] > 1:
        sys.exit(f"train.py: {args.config}: experts: {config['experts']}: this model has one dense feed-forward; give 0")
    if args.check:
        import check
        sys.exit(1 if check.main(config, args.compile) else 0)

    torch.manual_seed(1)
    length, tokens = config["context_length"], config["train"]["batch_tokens"]
    sequences = args.micro_batch or config["train"]["micro_batch"]
    if sequences < 1 or tokens % (sequences * length):
        sys.exit(f"train.py: --micro-batch {sequences}: a step has {tokens // length} sequences; give a divisor of that")
    mode = "fake_quant" if config["quant"]["activations"]["bits"] == 8 else "weights_only"
    trainer = model.Trainer(config, initial(model.shapes(config), torch), args.variant, mode=mode, compiled=args.compile)
    # Ids as `chiplm bench train` draws them: the id k with a probability proportional to 1/(k+1).
    probability = 1 / torch.arange(1, config["vocab_size"] + 1)
    ids = torch.multinomial(probability, tokens // length * (length + 1), replacement=True).view(-1, length + 1)
    batch = list(zip(ids[:, :-1].split(sequences), ids[:, 1:].split(sequences)))

    clock = [time.perf_counter()]
    losses = []
    for _ in range(args.warmup + args.steps):
        try:
            losses.append(trainer.step(batch))
        except Exception as e:  # torch.compile fails in many ways, most with pages of text
            sys.exit(f"train.py: {type(e).__name__}: {str(e).strip().splitlines()[0] if str(e).strip() else e!r}")
        clock.append(time.perf_counter())
    timed = clock[args.warmup:]
    print(json.dumps({
        "tokens_per_second": args.steps * tokens / (timed[-1] - timed[0]),
        "fastest_step_seconds": min(b - a for a, b in zip(timed, timed[1:])),
        "mode": "compiled" if args.compile else "eager", "variant": args.variant, "threads": args.threads,
        "micro_batch": sequences, "tokens_per_step": tokens, "steps": args.steps,
        "warmup_seconds": round(timed[0] - clock[0], 1), "first_loss": losses[0], "last_loss": losses[-1],
        "torch": torch.__version__, "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "environment": {k: v for k, v in sorted(os.environ.items())
                        if k.startswith(("OMP_", "GOMP_", "KMP_", "MKL_", "MALLOC_"))}}))


if __name__ == "__main__":
    main()
