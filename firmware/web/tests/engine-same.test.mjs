/* The engine in the browser gives what the same model gives elsewhere: by the Go binding, the chiplm command, and the firmware
 * on the virtual board. Nothing is expected here that one of these did not compute in this run. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';

import { calm, load, write } from './engine/core.mjs';
import { board, boardText, exported, reference, run } from './engine/programs.mjs';
import { image, imagePath } from './engine/released.mjs';
import { chiplm } from './support/program.mjs';

const hex = (text) => Buffer.from(text).toString('hex');

/** Released: all logits are read. Exported for the chip: it has clusters, which small top-k search. */
let released, clustered, go, firmware;

before(async () => {
    const path = await exported('combo');
    released = await load(image);
    clustered = await load(await readFile(path));
    go = await reference(imagePath);
    firmware = await board(path);
});

after(() => {
    go?.end();
    firmware?.end();
});

test('the exported image has clusters, the released one has none', () => {
    assert.equal(released.info.clusters, 0);
    assert.ok(clustered.info.clusters > 0);
    assert.equal(released.info.model_sha256, clustered.info.model_sha256);
});

test('the digest is that of the Go binding and of the board, in every mode', async () => {
    const { context_length: context } = released.info;
    for (const n of [1, 64, context]) {
        const want = await go.ask(`digest ${n}`);
        for (const core of [released, clustered]) {
            for (const mode of [0, 1, 2]) {
                assert.equal(await core.digest(n, mode, calm), want, `n ${n}, mode ${mode}`);
            }
        }
    }
    assert.equal(await firmware.ask('D 64 0'), `D 64 0 ${await clustered.digest(64, 0, calm)}`);
});

test('the same seed writes the same story as chiplm sample', async () => {
    for (const [seed, topK, temperature] of [[1, 40, 0.7], [7, 3, 1.1], [12345678901, 4096, 0.45], [0, 40, 0], [5, 0, 1.2], [6, 0, 0]]) {
        const prompt = 'One day, a little fox';
        const said = JSON.parse(await run(chiplm, 'sample', 'combo', '--json', '--prompt', prompt, '--seed', seed,
            '--top-k', topK, '--temperature', temperature));
        const { ids } = await write(released, { text: prompt, tokens: 1000, temperature, topK, seed: BigInt(seed) });
        const text = Buffer.concat(ids.map((id) => released.token(id))).toString();
        assert.equal(text, said.text, `seed ${seed}`);
        assert.equal(ids.length, said.tokens);
    }
});

test('the same request gives the same ids as the board and the Go binding', async () => {
    const texts = ['Once upon a time', '', 'Tim said, "', 'a\u00e9\u{1f600}', 'The end.'];
    let seed = 1n;
    for (const text of texts) {
        for (const [thousandths, topK] of [[0, 0], [0, 40], [1, 1], [700, 1], [700, 2], [900, 4], [900, 5], [1300, 40], [2500, 0],
            [1000000, 4095]]) {
            seed = BigInt.asUintN(64, seed * 6364136223846793005n + 1442695040888963407n);
            const request = { text, tokens: 12, temperature: thousandths / 1000, topK, seed };
            const what = `${JSON.stringify(text)}, ${thousandths} ${topK} ${seed}`;
            const got = await write(clustered, request);
            const there = await boardText(firmware, `S 12 ${thousandths} ${topK} ${seed} ${text}`);
            assert.deepEqual({ ids: got.ids, count: got.count, why: got.why }, there, what);
            assert.deepEqual((await write(released, request)).ids, there.ids, what);
            const bound = await go.ask(`write ${thousandths} ${topK} ${seed} 12 ${hex(text)}`);
            assert.equal(got.ids.join(' '), bound, what);
        }
    }
});

test('ids are fed as they are, to the end of the context', async () => {
    const { context_length: context } = clustered.info;
    for (const length of [1, 7, 8, 9, context - 1, context]) {
        const ids = Array.from({ length }, (_, i) => (i * 31 + 5) % clustered.info.vocab_size);
        const got = await write(clustered, { ids, tokens: 4, temperature: 0.8, topK: 2, seed: 3n });
        const there = await boardText(firmware, `G 4 800 2 3 0 ${length} ${ids.join(' ')}`);
        assert.deepEqual({ ids: got.ids, count: got.count, why: got.why }, there, `${length} ids`);
    }
    assert.equal((await boardText(firmware, 'G 0 0 0 0 0 1 0')).why, 'length');
    assert.deepEqual((await write(clustered, { ids: [0], tokens: 0 })).why, 'length');
});

test('the profile names the operations that the board names, in its order', async () => {
    assert.equal(clustered.profile(), null);
    const request = { text: 'Once', tokens: 20, temperature: 0.7, topK: 4, seed: 1n, profile: true };
    const { ms } = await write(clustered, request);
    const profile = clustered.profile();
    assert.equal(await firmware.ask('Q 1'), 'Q 1');
    await boardText(firmware, 'S 20 700 4 1 Once');
    const there = JSON.parse(await firmware.ask('Q'));
    assert.deepEqual(profile.map(({ name }) => name), there.profile.map(({ operation }) => operation));
    const sum = profile.reduce((all, { us }) => all + us, 0);
    assert.ok(sum > 0 && sum <= ms * 1000 * 1.01, `${sum} µs of ${ms} ms`);
    await write(clustered, { ...request, profile: false });
    assert.deepEqual(clustered.profile(), profile, 'a request without its profile leaves the last one');
});

test('what a model is, the board says too', async () => {
    const { model } = JSON.parse(await firmware.ask('I'));
    const { image_crc32: crc, ...there } = model;
    assert.match(crc, /^[0-9a-f]{8}$/);
    for (const [key, value] of Object.entries(there)) {
        assert.deepEqual(clustered.info[key], value, key);
    }
});
