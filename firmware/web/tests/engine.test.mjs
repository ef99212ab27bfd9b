/* The engine as the page uses it, its worker included. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { options, running } from './engine/worker.mjs';
import { facts, image, wasm } from './engine/released.mjs';
import { Engine } from '../page/engine.js';

/** Runs a test with an engine. */
function withEngine(name, work) {
    test(name, async (t) => {
        const engine = await Engine.start({ image, wasm });
        try {
            await work(engine, t);
        } finally {
            await engine.close();
        }
    });
}

/** Writes a text; its tokens and what it ended with. */
async function write(engine, request) {
    const tokens = [];
    const end = await engine.generate({ ...request, onToken: (token) => tokens.push(token) });
    return { end, tokens, ids: tokens.map(({ id }) => id), text: Buffer.concat(tokens.map(({ bytes }) => bytes)).toString() };
}

/** Waits until all workers have ended. */
async function allEnded() {
    for (let i = 0; running.size > 0; i++) {
        assert.ok(i < 6000, `${running.size} workers have not ended`);
        await new Promise((resolve) => { setTimeout(resolve, 10); });
    }
}

withEngine('a released model writes the text of its release', async (engine) => {
    assert.equal(engine.info.sha256, facts.model_sha256);
    assert.equal(engine.info.image_sha256, facts.files['model.clm'].sha256);
    assert.equal(engine.info.vocab_size, facts.vocab_size);
    assert.equal(engine.info.golden, true);
    const { prompt, temperature, topk, seed, text } = facts.sample;
    const prompts = [];
    const written = await write(engine, {
        text: prompt, tokens: engine.info.context_length, temperature, topK: topk, seed, onPrompt: (ms) => prompts.push(ms),
    });
    assert.equal(written.text, text);
    assert.equal(written.end.why, 'end');
    assert.equal(written.end.count, written.tokens.length);
    assert.equal(prompts.length, 1);
    assert.ok(prompts[0] > 0);
    const rest = written.tokens.slice(1).reduce((sum, { us }) => sum + us, 0);
    assert.ok(Math.abs(written.end.ms - rest / 1000 / (written.end.count - 1)) < 1e-6);
});

test('the start tells its stages', async () => {
    const stages = [];
    const engine = await Engine.start({ image, wasm, onProgress: ({ stage }) => stages.push(stage) });
    await engine.close();
    assert.deepEqual(stages, ['module', 'check', 'golden']);
    await allEnded();
});

withEngine('the bytes of a token, without asking the worker', async (engine) => {
    assert.deepEqual(engine.token(engine.info.end_of_text), new Uint8Array());
    for (const id of [-1, engine.info.vocab_size, 0.5, NaN, '1x', undefined]) {
        assert.deepEqual(engine.token(id), new Uint8Array(), String(id));
    }
    const [once] = await engine.encode('Once');
    const token = engine.token(once);
    const text = Buffer.from(token).toString();
    assert.match(text, /^O/);
    token[0] = 0;
    assert.equal(Buffer.from(engine.token(once)).toString(), text, 'it is a copy');
});

withEngine('stop between two tokens, in the prompt, before its turn, and before it was asked', async (engine) => {
    const stop = new AbortController();
    let seen = 0;
    const end = await engine.generate({
        text: 'Once', tokens: 250, temperature: 1, seed: 2n, signal: stop.signal, onToken: () => { if (++seen === 3) { stop.abort(); } },
    });
    assert.equal(end.why, 'stopped');
    assert.equal(end.count, seen);
    assert.ok(seen < 100, `${seen} tokens came`);

    const early = new AbortController();
    const running = engine.generate({ ids: new Int32Array(engine.info.context_length), tokens: 1, signal: early.signal });
    const behind = new AbortController();
    const waiting = engine.generate({ text: 'Once', tokens: 50, signal: behind.signal });
    behind.abort();
    setTimeout(() => early.abort(), 1);
    const first = await running;
    assert.ok(first.why === 'stopped' && first.count === 0 || first.why === 'length', JSON.stringify(first));
    assert.deepEqual(await waiting, { count: 0, ms: 0, why: 'stopped' });
    assert.deepEqual(await engine.generate({ text: '', tokens: 1, signal: AbortSignal.abort() }), { count: 0, ms: 0, why: 'stopped' });

    const digest = new AbortController();
    setTimeout(() => digest.abort(), 5);
    await assert.rejects(engine.digest(engine.info.context_length, 2, { signal: digest.signal }), { name: 'AbortError' });
    await assert.rejects(engine.digest(1, 0, { signal: AbortSignal.abort() }), { name: 'AbortError' });
    assert.match(await engine.digest(4), /^0x[0-9a-f]{16}$/);
});

withEngine('requests wait for each other, encoding does not', async (engine) => {
    const order = [];
    const note = (name) => (value) => { order.push(name); return value; };
    const request = { text: 'Once upon a time', tokens: 60, temperature: 0.7, topK: 40, seed: 1n };
    const alone = await write(engine, request);
    const [one, digest, two, profile, ids] = await Promise.all([
        write(engine, { ...request, profile: true }).then(note('one')), engine.digest(8).then(note('digest')),
        write(engine, request).then(note('two')), engine.profile().then(note('profile')), engine.encode('Once').then(note('encode')),
    ]);
    assert.deepEqual(order, ['encode', 'one', 'digest', 'two', 'profile']);
    assert.deepEqual(one.ids, alone.ids);
    assert.deepEqual(two.ids, alone.ids);
    assert.equal(digest, await engine.digest(8));
    assert.ok(profile.some(({ name, us }) => name === 'head' && us > 0));
    assert.equal(Buffer.concat(Array.from(ids, (id) => engine.token(id))).toString(), 'Once');
});

test('two engines at once, of the same bytes', async () => {
    const engines = await Promise.all([1, 2].map(() => Engine.start({ image, wasm })));
    const written = await Promise.all(engines.map((engine, i) => write(engine, { text: 'Once', tokens: 40, temperature: 1, seed: i })));
    const again = await write(engines[0], { text: 'Once', tokens: 40, temperature: 1, seed: 1 });
    assert.deepEqual(again.ids, written[1].ids);
    assert.notDeepEqual(written[0].ids, written[1].ids);
    await engines[0].close();
    assert.match(await engines[1].digest(4), /^0x/);
    await engines[1].close();
});

withEngine('a request that is wrong has a sentence, and the next one is answered', async (engine) => {
    const { context_length: context, vocab_size: vocabulary } = engine.info;
    const good = { text: 'Once', tokens: 2 };
    const tooLong = new RegExp(`^The prompt has ${context + 1} tokens, the context of this model ${context}\\.$`);
    const wrong = [
        ['range', /^The number of tokens is undefined, it must be a whole number from 0 to 1000000\.$/, { tokens: undefined }],
        ['range', /^The number of tokens is -1,/, { tokens: -1 }],
        ['range', /^The number of tokens is 1.5,/, { tokens: 1.5 }],
        ['range', /^The number of tokens is 1000001,/, { tokens: 1000001 }],
        ['range', /^The number of tokens is 2, it/, { tokens: '2' }],
        ['range', /^The temperature is NaN, it must be a number from 0 to 1000 in steps of 0\.001\.$/, { temperature: NaN }],
        ['range', /^The temperature is -0\.1,/, { temperature: -0.1 }],
        ['range', /^The temperature is 0\.0005,/, { temperature: 0.0005 }],
        ['range', /^The temperature is 1000\.001,/, { temperature: 1000.001 }],
        ['range', /^The temperature is Infinity,/, { temperature: Infinity }],
        ['range', /^Top-k is -1,/, { topK: -1 }],
        ['range', /^Top-k is 4294967296,/, { topK: 2 ** 32 }],
        ['range', /^The seed is 18446744073709551616, it must be a whole number from 0 to 18446744073709551615\.$/, { seed: 2n ** 64n }],
        ['range', /^The seed is -1,/, { seed: '-1' }],
        ['range', /^The seed is 0x1,/, { seed: '0x1' }],
        ['range', /^The seed is ,/, { seed: '' }],
        ['range', /^The seed is 9{24}…,/, { seed: '9'.repeat(1000) }],
        ['range', /^A request has either a text or ids\.$/, { text: undefined }],
        ['range', /^A request has either a text or ids\.$/, { ids: [0] }],
        ['range', /neither a string nor bytes/, { text: 5 }],
        ['range', /^The ids are no list/, { text: undefined, ids: 'abc' }],
        ['range', /^The number of ids is 0,/, { text: undefined, ids: [] }],
        ['id', new RegExp(`^Id ${vocabulary} is outside the vocabulary of ${vocabulary}\\.$`), { text: undefined, ids: [0, vocabulary] }],
        ['id', /^Id -1 is/, { text: undefined, ids: [-1] }],
        ['id', /^Id NaN is/, { text: undefined, ids: [NaN] }],
        ['context', tooLong, { text: undefined, ids: new Int32Array(context + 1) }],
        ['context', tooLong, { text: new Uint8Array(context) }],
        ['too-long', /^The text has 1048577 bytes/, { text: 'a'.repeat(1048577) }],
    ];
    for (const [code, message, change] of wrong) {
        await assert.rejects(engine.generate({ ...good, ...change }), (error) => {
            assert.equal(error.code, code, error.message);
            assert.match(error.message, message);
            assert.match(error.todo, /\.$/);
            return true;
        });
    }
    for (const [n, mode] of [[0, 0], [context + 1, 0], [1.5, 0], ['1', 0], [1, 3], [1, -1], [1, '0']]) {
        await assert.rejects(engine.digest(n, mode), { code: 'range' });
    }
    await assert.rejects(engine.encode(undefined), { code: 'range' });
    const odd = await write(engine, { text: '\0 \ud800 \u{1f600}\n\\x00', tokens: 2, seed: '18446744073709551615', topK: 2 ** 32 - 1, temperature: 1000 });
    assert.equal(odd.end.count, 2);
    assert.equal((await engine.generate({ text: new Uint8Array(context - 1), tokens: 1 })).why, 'length');
});

withEngine('a function of the caller that throws ends its request', async (engine) => {
    const failing = () => { throw new RangeError('mine'); };
    await assert.rejects(engine.generate({ text: 'Once', tokens: 250, onToken: failing }), { name: 'RangeError', message: 'mine' });
    await assert.rejects(engine.generate({ text: 'Once', tokens: 250, onPrompt: failing }), { message: 'mine' });
    assert.equal((await engine.generate({ text: 'Once', tokens: 2 })).count, 2);
});

test('closing ends what runs, and what is asked later', async () => {
    const engine = await Engine.start({ image, wasm });
    const running = engine.generate({ text: 'Once', tokens: 250, onToken: () => engine.close() });
    const waiting = engine.digest(8);
    await assert.rejects(running, { code: 'closed', message: 'The engine was closed.', todo: 'Start it again.' });
    await assert.rejects(waiting, { code: 'closed' });
    await assert.rejects(engine.profile(), { code: 'closed' });
    await engine.close();
});

test('the start can be given up', async () => {
    const give = new AbortController();
    const start = Engine.start({ image, wasm, signal: give.signal, onProgress: () => give.abort() });
    await assert.rejects(start, { name: 'AbortError' });
    await assert.rejects(Engine.start({ image, wasm, signal: give.signal }), { name: 'AbortError' });
    await allEnded();
});

test('an image that is refused ends the worker', async () => {
    const damaged = Buffer.from(image);
    damaged[100000] ^= 1;
    await assert.rejects(Engine.start({ image: damaged, wasm }), { code: 'image', message: /the checksum of the file is wrong/ });
    await assert.rejects(Engine.start({ image: new ArrayBuffer(0), wasm }), { code: 'image', message: /shorter than an image header/ });
    await allEnded();
});

test('a trap in the engine, and a worker that ends, are told', async (t) => {
    t.after(() => { options.before = null; });
    options.before = new URL('./engine/crash.mjs', import.meta.url).href;
    const engine = await Engine.start({ image, wasm });
    await assert.rejects(engine.generate({ text: 'Once', tokens: 100 }),
        { code: 'crash', message: /fault of its own: memory access out of bounds/, todo: /Load the page anew/ });
    await assert.rejects(engine.digest(4), { code: 'crash' }, 'its memory cannot be trusted any more');
    await engine.close();

    options.before = new URL('./engine/death.mjs', import.meta.url).href;
    const dying = Engine.start({ image, wasm }).then((started) => started.generate({ text: 'Once', tokens: 1000 }).then(() => started.digest(started.info.context_length)));
    await assert.rejects(dying, { code: 'crash', message: /worker ended: out of memory/, todo: /Load the page anew/ });
    await allEnded();
});

test('image and module are read from addresses, with progress; failures have sentences', async (t) => {
    const server = createServer((request, response) => {
        switch (request.url) {
        case '/model.clm':
            response.setHeader('content-length', image.length);
            response.end(image);
            break;
        case '/engine.wasm':
            response.end(wasm);
            break;
        case '/cut':
            response.setHeader('content-length', image.length);
            response.write(image.subarray(0, 100000), () => response.destroy());
            break;
        default:
            response.statusCode = 404;
            response.end('<h1>no</h1>');
        }
    });
    await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    t.after(() => server.close());
    const at = (path) => new URL(path, `http://127.0.0.1:${server.address().port}`);
    const told = [];
    const engine = await Engine.start({ image: at('/model.clm'), wasm: at('/engine.wasm').href, onProgress: (p) => told.push(p) });
    assert.equal(engine.info.image_sha256, facts.files['model.clm'].sha256);
    await engine.close();
    const read = told.filter(({ stage }) => stage === 'image');
    assert.deepEqual(read.at(-1), { stage: 'image', done: image.length, total: image.length });
    assert.ok(read.every(({ done }, i) => i === 0 || done > read[i - 1].done));

    await assert.rejects(Engine.start({ image: at('/none'), wasm }), { code: 'fetch', message: /^The model could not be read from .*: the server says 404/ });
    await assert.rejects(Engine.start({ image, wasm: at('/none') }), { code: 'fetch', message: /^The engine could not be read/ });
    await assert.rejects(Engine.start({ image: at('/cut'), wasm }), { code: 'fetch', todo: /Is the program that serves this page still running/ });
    await assert.rejects(Engine.start({ image: 'http://127.0.0.1:1/model.clm', wasm }), { code: 'fetch' });
});
