/* Images of every kind, and images that are none: accepted and refused as elsewhere, with the engine's sentence. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Core } from '../page/engine-core.js';
import { calm, load, write } from './engine/core.mjs';
import { withOtherGolden } from './engine/damage.mjs';
import { reference, run } from './engine/programs.mjs';
import { image, imagePath, wasm } from './engine/released.mjs';

let folder;

before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'chiplm-images-'));
    process.env.CHIPLM_FUZZ_SEEDS = folder;
    await run('go', 'test', '-tags', 'noblas', '-count=1', '-run', '^TestWriteSeeds$', './engine');
});

after(() => rm(folder, { recursive: true }));

test('small images of every kind run: each width of code and kind of scale, stored transposed, experts, clusters', async () => {
    const names = await readdir(folder);
    assert.ok(names.length >= 10, `${names.length} images`);
    for (const name of names) {
        const path = join(folder, name);
        const core = await load(await readFile(path)); // proves the golden, which the training graph's arithmetic gave
        const go = await reference(path);
        try {
            const n = core.info.context_length;
            const want = await go.ask(`digest ${n}`);
            assert.equal(await core.digest(n, 0, calm), want, name);
            assert.equal(await core.digest(n, 2, calm), want, name);
            const first = core.info.vocab_size - 1; // an image without a tokenizer has no end-of-text to start with
            const { count, why } = await write(core, { ids: [first], tokens: 20, temperature: 1, seed: 5n });
            assert.ok(why === 'context' ? count === n : why === 'end' && count < n, `${name}: ${count} ${why}`);
        } finally {
            go.end();
        }
    }
});

test('an image without a tokenizer has a sentence for a text', async () => {
    const core = await load(await readFile(join(folder, 'relu.clm')));
    await assert.rejects(write(core, { text: 'Once', tokens: 1 }), { code: 'encode', message: /the image has no tokenizer/ });
});

test('a flipped byte is refused with the sentence that others give, wherever it is', async () => {
    const path = join(folder, 'text.clm');
    const bytes = await readFile(path);
    const go = await reference(path);
    const seen = new Set();
    try {
        for (let at = 0; at < bytes.length; at += at < 256 ? 1 : 97) {
            const mask = 1 << (at % 8);
            const flipped = Buffer.from(bytes);
            flipped[at] ^= mask;
            const sentence = await go.ask(`flip ${at} ${mask}`);
            await assert.rejects(load(flipped), ({ code, message }) => code === 'image' && message.includes(sentence), `byte ${at}: ${sentence}`);
            seen.add(sentence);
        }
        for (let n = 0; n < bytes.length; n += 500) {
            const sentence = await go.ask(`cut ${n}`);
            await assert.rejects(load(bytes.subarray(0, n)), ({ code, message }) => code === 'image' && message.includes(sentence), `cut at ${n}`);
            seen.add(sentence);
        }
    } finally {
        go.end();
    }
    assert.ok(seen.size >= 6, [...seen].join('\n'));
});

test('the released image with a flipped byte in the middle is refused', async () => {
    const go = await reference(imagePath);
    try {
        for (const at of [5000, image.length >> 1, image.length - 1]) {
            const flipped = Buffer.from(image);
            flipped[at] ^= 4;
            const sentence = await go.ask(`flip ${at} 4`);
            await assert.rejects(load(flipped), ({ message }) => message.includes(sentence));
        }
    } finally {
        go.end();
    }
});

test('an image whose golden gives another digest is refused as one that this browser computes wrong', async () => {
    await assert.rejects(load(withOtherGolden(image)), { code: 'golden', message: /does not compute this model’s bits: the golden run gave other bits/ });
});

test('a browser without memory for a model, or for a text, has a sentence', async () => {
    const { instance: { exports } } = await WebAssembly.instantiate(wasm, { page: { milliseconds: () => 0 } });
    const before = exports.memory.buffer.byteLength;
    assert.equal(exports.engine_file(2 ** 32 - 1), 0, 'an instance has 4 GB at most');
    assert.equal(exports.memory.buffer.byteLength, before);

    const { instantiate } = WebAssembly;
    for (const [name, result] of [['engine_file', 0], ['engine_open', -1000], ['engine_text_room', 0]]) {
        WebAssembly.instantiate = async (...values) => {
            const made = await instantiate(...values);
            return { instance: { exports: { ...made.instance.exports, [name]: () => result } } };
        };
        try {
            await assert.rejects(load(image).then((core) => core.encode(new Uint8Array(9))),
                { code: 'memory', message: /no memory left/, todo: /Close other pages/ }, name);
        } finally {
            WebAssembly.instantiate = instantiate;
        }
    }
});

test('bytes that are no module have a sentence', async () => {
    for (const bytes of [new Uint8Array(0), Buffer.from('<!doctype html>')]) {
        await assert.rejects(Core.load({ wasm: bytes, image }), { code: 'wasm', message: /cannot run the engine/ });
    }
});
