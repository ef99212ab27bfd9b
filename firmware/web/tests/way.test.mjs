/* A way to run the model: what it does while its source proves itself. */
import assert from 'node:assert/strict';
import test from 'node:test';

import { Trouble } from '../page/trouble.js';
import { LineWay, Way } from '../page/way.js';

const info = { sha256: 'ab', context_length: 32, vocab_size: 270 };
const settled = () => new Promise((resolve) => { setTimeout(resolve, 20); });

/** A source whose digest ends when end() says how. */
function source() {
    let end;
    return { info, trouble: null, end: (error) => end(error), digest: () => new Promise((_, reject) => { end = reject; }), close: async () => {} };
}

test('a digest that fails is told; one that was given up for a story is not', async () => {
    const way = new Way('board', 'the board', []);
    const one = source();
    way.adopt(one, 'ready');
    one.end(new Trouble('silent', 'x', 'y'));
    await settled();
    assert.equal(way.trouble.code, 'silent');
    assert.equal(way.proof.state, 'failed');
    const other = source();
    way.adopt(other, 'ready');
    way.pauseProof();
    other.end(new Trouble('silent', 'x', 'y'));
    await settled();
    assert.equal(way.trouble, null);
});

test('connecting is given up by a disconnect, and by the next connecting, which waits for its end', async () => {
    const way = new LineWay('board', 'the board', []);
    let running = 0;
    const attempt = ({ signal }) => new Promise((_, reject) => {
        assert.equal(++running, 1);
        signal.addEventListener('abort', () => setTimeout(() => {
            running--;
            reject(signal.reason);
        }, 10));
    });
    way.connectBy(attempt);
    await settled();
    assert.deepEqual([way.busy, way.caption, way.connecting !== null], [true, 'connecting', true]);
    way.connectBy(attempt);
    await settled();
    await settled();
    assert.deepEqual([running, way.busy], [1, true]);
    await way.disconnect();
    assert.deepEqual([running, way.busy, way.caption, way.trouble, way.connecting], [0, false, 'no board', null, null]);
    await way.connectBy(async () => { throw new Trouble('silent', 'x', 'y'); });
    assert.deepEqual([way.busy, way.trouble.code, way.connecting], [false, 'silent', null]);
});
