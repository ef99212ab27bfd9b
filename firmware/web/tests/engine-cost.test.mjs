/* What the engine takes: time to the first token, and memory over many texts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { load, write } from './engine/core.mjs';
import { image } from './engine/released.mjs';
import { stopwatch } from './engine/seconds.mjs';

test('from bytes to the first token in less than a second of processor time', async (t) => {
    const spent = stopwatch();
    const core = await load(image);
    const loaded = spent();
    const { count } = await write(core, { text: 'Once upon a time', tokens: 1, temperature: 0.7, topK: 40, seed: 1n });
    const first = spent();
    assert.equal(count, 1);
    t.diagnostic(`loaded, checked and proved after ${loaded.toFixed(3)} s, first token after ${first.toFixed(3)} s`);
    assert.ok(first < 1, `${first} s`);
    const tokens = 200;
    const story = await write(core, { ids: [0], tokens, temperature: 0.7, topK: 40, seed: 1n });
    t.diagnostic(`${((spent() - first) * 1000 / story.count).toFixed(2)} ms a token over ${story.count}`);
});

test('a thousand texts leave memory as it was', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc');
    let memory = null;
    const { instantiate } = WebAssembly;
    WebAssembly.instantiate = async (...values) => {
        const made = await instantiate(...values);
        ({ memory } = made.instance.exports);
        return made;
    };
    const core = await load(image);
    WebAssembly.instantiate = instantiate;
    const heap = () => {
        collect();
        return process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
    };
    const text = 'Once upon a time there was a frog who liked to sing. '.repeat(4);
    const one = async (i) => write(core, { text: text.slice(0, i % text.length), tokens: 3, temperature: 0.9, topK: i % 50, seed: i });
    for (let i = 0; i < 220; i++) {
        await one(i);
    }
    const before = { bytes: memory.buffer.byteLength, heap: heap() };
    for (let i = 0; i < 1000; i++) {
        await one(i);
    }
    assert.equal(memory.buffer.byteLength, before.bytes);
    assert.ok(heap() - before.heap < 1e6, `${heap() - before.heap} bytes more`);
    assert.ok(memory.buffer.byteLength < image.length + 4e6, `${memory.buffer.byteLength} bytes for an image of ${image.length}`);
});
