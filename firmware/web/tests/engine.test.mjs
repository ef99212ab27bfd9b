/* The engine as the page uses it, its worker included. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import './engine/worker.mjs';
import { facts, image, wasm } from './engine/released.mjs';
import { Engine } from '../page/engine.js';

/** Writes a text; its tokens and what it ended with. */
async function write(engine, request) {
    const tokens = [];
    const end = await engine.generate({ ...request, onToken: (token) => tokens.push(token) });
    return { end, tokens, text: Buffer.concat(tokens.map(({ bytes }) => bytes)).toString() };
}

test('a released model writes the text of its release', async () => {
    const stages = [];
    const engine = await Engine.start({ image, wasm, onProgress: ({ stage }) => stages.push(stage) });
    try {
        assert.deepEqual(stages, ['module', 'check', 'golden']);
        assert.equal(engine.info.sha256, facts.model_sha256);
        assert.equal(engine.info.image_sha256, facts.files['model.clm'].sha256);
        assert.equal(engine.info.vocab_size, facts.vocab_size);
        assert.equal(engine.info.golden, true);
        const { prompt, temperature, topk, seed, text } = facts.sample;
        const written = await write(engine, { text: prompt, tokens: 256, temperature, topK: topk, seed });
        assert.equal(written.text, text);
        assert.equal(written.end.why, 'end');
        assert.equal(written.end.count, written.tokens.length);
    } finally {
        await engine.close();
    }
});
