/* What the desk computes: requests, scales, predictions, comparisons. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';

import { nice, scaleOf } from '../page/chart.js';
import { against, bytes, left, plain, short } from '../page/format.js';
import { predictedAt, predictedMean, predictedOperation } from '../page/prediction.js';
import { requestOf } from '../page/request.js';
import { ownMachine, socketAddress } from '../page/socket.js';
import { Stories } from '../page/stories.js';
import { Trouble, troubleOf } from '../page/trouble.js';

const limits = { context: 256, vocabulary: 4096 };
const dials = { start: 'Once', length: '200', temperature: '0.7', topk: '40', seed: '1' };

test('dials become a request', () => {
    assert.deepEqual(requestOf(dials, limits).request, { text: 'Once', tokens: 200, temperature: 0.7, topK: 40, seed: '1' });
    const most = { ...dials, temperature: '0.12345', topk: '4096', length: '256', seed: ' 018446744073709551615'.replace('0', '') };
    assert.deepEqual(requestOf(most, limits).request, { text: 'Once', tokens: 256, temperature: 0.123, topK: 4096, seed: '18446744073709551615' });
});

for (const [field, values] of Object.entries({
    length: ['', '0', '257', '1.5', '-1', '1e2', 'many'], temperature: ['', '-0.1', '1001', 'x', '1e1', 'NaN'],
    topk: ['', '4097', '1.5', '-1'], seed: ['', '-1', '1.5', '18446744073709551616', '0x10', '999999999999999999999'],
})) {
    test(`${field} outside its range is told`, () => {
        for (const value of values) {
            const { wrong, field: told } = requestOf({ ...dials, [field]: value }, limits);
            assert.equal(told, field, value);
            assert.match(wrong, /\d/);
        }
    });
}

test('the scale is made for the usual bar, and tells of longer ones', () => {
    assert.deepEqual([0.3, 1, 1.01, 11, 99, 100, 101].map(nice), [0.3, 1, 1.5, 15, 100, 100, 150]);
    assert.deepEqual(scaleOf([]), { top: 1, cut: 0, longest: 0 });
    assert.deepEqual(scaleOf([90, 10, 11, 12]), { top: 15, cut: 0, longest: 12 }, 'the first counts for nothing');
    assert.deepEqual(scaleOf([1, 10, 11, 12, 500]), { top: 15, cut: 1, longest: 500 });
    const busy = scaleOf([1, ...Array.from({ length: 100 }, (_, i) => (i % 3 === 0 ? 30 + i / 10 : 2))]);
    assert.ok(busy.top >= 30 && busy.cut <= 10, 'where many are long, few are cut');
    assert.equal(scaleOf([1, 10, 11], 14).top, 20, 'what must be in it is');
    assert.ok(scaleOf([0, 0, 0]).top > 0);
});

const cost = { cost: { start_ms: 9, middle_ms: 12, end_ms: 15, from: 0, to: 255, mean_ms: 12, parts: [{ name: 'attention scores', ms: 1 }, { name: 'attention mix', ms: 2 }] } };

test('the prediction goes along the context', () => {
    assert.deepEqual([0, 127.5, 255, 400].map((at) => predictedAt(cost, at)), [9, 12, 15, 15]);
    assert.equal(predictedMean(cost, null, 100), 12);
    assert.equal(predictedMean(cost, 5, 1), 12);
    assert.equal(predictedMean(cost, 100, 3), (predictedAt(cost, 100) + predictedAt(cost, 101)) / 2);
    assert.equal(predictedOperation(cost, 'attention'), 3000);
    assert.equal(predictedOperation(cost, 'x'), null);
    assert.equal(predictedOperation(null, 'attention'), null);
});

test('stories of one wish are compared between the ways', () => {
    const stories = new Stories();
    assert.equal(stories.compare({ seed: 1 }, 'this browser', [1, 2, 3]), '');
    assert.equal(stories.compare({ seed: 2 }, 'the board', [9]), '');
    assert.equal(stories.compare({ seed: 1 }, 'the board', [1, 2]), 'The same tokens as this browser wrote.');
    assert.equal(stories.compare({ seed: 1 }, 'the virtual board', [1, 7, 3]),
        'Other tokens than this browser wrote, from number 2 on. Other tokens than the board wrote, from number 2 on.');
});

test('numbers are short', () => {
    assert.deepEqual([0, 0.01234, 1.234, 12.34, 123.4, 1234.5, NaN].map(short), ['0.00', '0.012', '1.23', '12.3', '123', '1,235', '–']);
    assert.deepEqual([1500, 15, 7.5, 0.25, 0.005].map(plain), ['1,500', '15', '7.5', '0.25', '0.005']);
    assert.deepEqual([512, 20480, 4088832].map(bytes), ['512 bytes', '20.5 kB', '4.09 MB']);
    assert.deepEqual([0.4, 12, 130].map(left), ['a second left', '12 seconds left', '2 minutes left']);
    assert.deepEqual([[10, 10.01], [11, 10], [5, 10]].map(([a, b]) => against(a, b)), ['as predicted', '10 % more than predicted', '50 % less than predicted']);
});

test('whatever was thrown becomes a sentence', () => {
    const own = new Trouble('x', 'It is so.', 'Do this.');
    assert.equal(troubleOf(own), own);
    assert.equal(own.sentence, 'It is so. Do this.');
    assert.equal(new Trouble('x', 'It is so.', '').sentence, 'It is so.');
    for (const thrown of [new TypeError('x'), 'x', undefined]) {
        assert.equal(troubleOf(thrown).code, 'unexpected');
    }
});

test('the dials of the page go as far as what is accepted', async () => {
    const html = await readFile(new URL('../page/index.html', import.meta.url), 'utf8');
    const bound = (id, name) => new RegExp(`<input[^>]* id="${id}"[^>]* ${name}="([^"]+)"`).exec(html)?.[1];
    const least = bound('temperature', 'min');
    const most = bound('temperature', 'max');
    assert.ok(requestOf({ ...dials, temperature: least }, limits).request);
    assert.ok(requestOf({ ...dials, temperature: most }, limits).request);
    assert.match(requestOf({ ...dials, temperature: String(Number(most) + 1) }, limits).wrong, new RegExp(`to ${most};`));
    for (const id of ['length', 'topk']) { // until a model is there, which sets the upper one
        assert.equal(requestOf({ ...dials, [id]: String(bound(id, 'min') - 1) }, limits).field, id);
        assert.ok(requestOf({ ...dials, [id]: bound(id, 'min') }, limits).request);
    }
});

test('only pages of this machine reach a virtual board', () => {
    for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '[::1]']) {
        ownMachine(host);
    }
    for (const host of ['example.org', '192.168.1.5', '127.0.0.1.example.org', 'localhost.example.org', '']) {
        assert.throws(() => ownMachine(host), { code: 'elsewhere' }, host);
    }
});

test('an address of a virtual board is one of this machine, and what is none is told shortly', () => {
    for (const typed of ['7411', ' 127.0.0.1:7411 ', 'ws://127.0.0.1:7411', 'WS://127.0.0.1:7411/x']) {
        assert.equal(socketAddress(typed), 'ws://127.0.0.1:7411/');
    }
    for (const typed of ['', '%zz', 'ws://example.org:80', 'http://127.0.0.1:1', 'ws://127.0.0.1', 'ws://[::1]:7411', '[::1]:7411', 'x'.repeat(100000), '99999']) {
        assert.throws(() => socketAddress(typed), (error) => error.code === 'address' && error.message.length < 200 && /127\.0\.0\.1/.test(error.todo));
    }
});
