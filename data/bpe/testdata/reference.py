"""Writes reference.json and reference-tokenizer.json: what Hugging Face's tokenizers trains, splits and encodes.

    pip install tokenizers==0.23.3
    python reference.py
"""

import json
import random

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<|endoftext|>"
rng = random.Random(7)


def train(stories, size):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(
        stories,
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=[END],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return t


def story():
    name = rng.choice(["Ada", "Béla", "Chen", "Dara", "Noë"])
    animal = rng.choice(["fox", "heron", "hedgehog", "mole", "otter"])
    place = rng.choice(["under the bridge", "by the mill", "in the old orchard", "on the hill"])
    thing = rng.choice(["lantern", "kite", "bell", "wooden boat", "jar of 12 buttons"])
    return "\n".join(
        [
            f"One morning {name} met a {animal} {place}.",
            f'"Is that your {thing}?" asked the {animal}. "It\'s lovely, isn\'t it?"',
            f"{name} {rng.choice(['laughed', 'nodded', 'sighed'])} and said, \"You'll see what we've got at home!\"",
            f"They {rng.choice(['walked', 'ran', 'wandered'])} back together, and they'd never been {rng.choice(['happier', 'hungrier', 'sleepier'])}.",
        ]
    )


stories = [story() for _ in range(60)]
few_letters = lambda alphabet, n, longest: [
    "".join(rng.choice(alphabet) for _ in range(rng.randrange(1, longest))) for _ in range(n)
]
odd = ["", " ", "a", "日本語の短い話。むかしむかし、あるところに。", "  two  spaces\t\ttabs \r\n\r\nlines ", "été été naïve", "🙂🙂🙃"] * 2

trainings = []
# Words over two or three letters make merges whose result exists already: the trainer's odd corner.
for name, corpus, asked in [
    ("stories", stories, 430),
    ("bytes alone", stories, 257),
    ("two letters", few_letters("ab", 60, 30), 600),
    ("three letters", few_letters("abc", 50, 40), 800),
    ("long words", few_letters("ab ", 6, 400), 500),
    ("all there is", few_letters("a", 8, 40), 1000),
    ("all of the odd text", odd, 1000),
]:
    model = json.loads(train(corpus, asked).to_str())["model"]
    names = sorted(model["vocab"], key=model["vocab"].get)
    size = len(names)  # less than asked for when the text ran out of pairs
    trainings.append(
        {"name": name, "stories": corpus, "asked": asked, "size": size, "vocab": names, "merges": [" ".join(m) for m in model["merges"]]}
    )

t = train(stories, 440)
t.save("reference-tokenizer.json")
t.encode_special_tokens = True

texts = [
    "",
    " ",
    "  ",
    "\n",
    " \n",
    "a b",
    "a  b",
    "a   b   ",
    "a \n b",
    "a\n\nb",
    "tab\tand\u00a0no-break\u3000wide",
    "x\u2003\u2003y \u2028 z",
    "It's we've they'd I'm you'll can't we're 'S 'T 'll' 'x '",
    "!'s ''s 's's '' '",
    "x'sy 'tis 'rest",
    "3 apples, 12,000 pears & ½ lemon ²³ Ⅷ ٣٤",
    "naïve café e\u0301 ñandú Straße ΑΒΓ привет",
    "日本語 テスト 한국어 ภาษาไทย हिन्दी",
    "🙂👩\u200d👩\u200d👧 ok\ufffd\ufffd",
    "\u0000\u0001\u007f\u0080\u0085\u009f",
    "\u1c89\ua7cb\U000105c0 letters since Unicode 16",
    "\ufeffbyte-order mark\r\nCRLF\r\n",
    f"one{END}two",
    "a" * 300,
    "ab" * 150 + " " * 40,
    "\u180e\u200b\u2060 no white space",
    "_under_score__ #tag @you a.b.c ... --- (x) [y] {z}",
]
pools = [
    [chr(c) for c in range(32, 127)],
    list(" \t\n\r\x0b\x85\u00a0\u3000'"),
    list("'sdtrevml xyz1 "),
    [chr(c) for c in range(0x80, 0x3000)],
    [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000],
]
for _ in range(150):
    chosen = rng.sample(pools, 2)
    texts.append("".join(rng.choice(rng.choice(chosen)) for _ in range(rng.randrange(1, 25))))

split = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str
encodings = [{"text": s, "words": [w for w, _ in split(s)], "ids": t.encode(s).ids} for s in texts + stories[:5]]

with open("reference.json", "w", encoding="utf-8") as f:
    json.dump({"trainings": trainings, "encodings": encodings}, f, ensure_ascii=True, separators=(",", ":"))
    f.write("\n")
