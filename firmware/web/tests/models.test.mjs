/* What the server of the page gives, and whatever else may lie where it is looked for. */
import assert from 'node:assert/strict';
import test from 'node:test';

import { readServer } from '../page/models.js';

const model = {
    name: 'small', source: 'a run', image: 'models/small/model.clm', sha256: 'ab', bytes: 9, digest: { n: 4, value: '0x1' }, board: null, cost: null,
    facts: { parameters: 100, weights: '4 bits', model_sha256: 'ab' },
};
const made = {
    ...model, board: { esp32s3: { image: 'models/small/esp32s3/model.clm', sha256: 'ab', bytes: 9 } },
    cost: { cost: { start_ms: 1, middle_ms: 1, end_ms: 1, mean_ms: 1, from: 0, to: 3, parts: [{ name: 'head', ms: 1 }] } },
};
const firmware = { chip: 'esp32s3', version: '', files: [{ name: 'a', url: 'a', sha256: 'ab', offset: 0, bytes: 1 }] };
const good = { 'models.json': [model], 'firmware.json': firmware, 'page.json': { virtual: null }, 'models/small/model.json': made };

function serve(t, files) {
    const before = globalThis.fetch;
    globalThis.fetch = async (name) => (files[name] === undefined ? new Response('', { status: 404 }) : new Response(JSON.stringify(files[name])));
    t.after(() => { globalThis.fetch = before; });
}

test('a server as chiplm page is', async (t) => {
    serve(t, good);
    const { models, firmware: got, virtual } = await readServer();
    assert.equal(virtual, null);
    assert.deepEqual(got, firmware);
    assert.deepEqual((await models[0].whole).board, made.board);
    serve(t, { ...good, 'firmware.json': null, 'page.json': { virtual: 'ws://127.0.0.1:1/' } });
    assert.equal((await readServer()).virtual, 'ws://127.0.0.1:1/');
    serve(t, { ...good, 'models.json': [], 'page.json': { virtual: 'ws://127.0.0.1:1/' } });
    const none = await readServer();
    assert.deepEqual([none.models, none.firmware, none.virtual], [[], firmware, 'ws://127.0.0.1:1/'], 'a server without models');
});

for (const [file, values] of Object.entries({
    'models.json': [{}, null, 7, 'x', [null], [{}], [{ name: 'x' }], [{ ...model, facts: null }], [{ ...model, facts: {} }], [{ ...model, image: 7 }],
        [{ ...model, digest: {} }], [{ ...model, board: { esp32s3: null } }], [{ ...model, board: [] }], [{ ...model, cost: {} }],
        [{ ...model, facts: { ...model.facts, score: 7 } }]],
    'firmware.json': [7, [], {}, { chip: 'esp32s3' }, { chip: 'esp32s3', files: [null] }, { chip: 'esp32s3', files: [{ name: 'a' }] }],
    'page.json': [null, 7, [], { virtual: 7 }],
})) {
    for (const value of values) {
        test(`${file} that is ${JSON.stringify(value).slice(0, 60)} is told`, async (t) => {
            serve(t, { ...good, [file]: value });
            await assert.rejects(readServer(), (error) => error.code === 'fetch' && error.message.includes(file) && error.todo !== '');
        });
    }
}

test('a model that cannot be read whole goes on no chip, and says why', async (t) => {
    for (const value of [undefined, null, {}, { ...made, board: 7 }]) {
        serve(t, { ...good, 'models/small/model.json': value });
        const { models } = await readServer();
        assert.match((await models[0].whole).refused, /model\.json/);
    }
});
