import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import test from 'node:test';

import { md5 } from '../page/md5.js';

test('MD5 is MD5, for every length around its blocks and for bytes inside a larger buffer', () => {
    const all = randomBytes(1000);
    for (const length of [0, 1, 3, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 999]) {
        const bytes = new Uint8Array(all.buffer, all.byteOffset + 1, length);
        assert.equal(md5(bytes), createHash('md5').update(bytes).digest('hex'), `${length} bytes`);
    }
    const large = randomBytes(1 << 20);
    assert.equal(md5(large), createHash('md5').update(large).digest('hex'));
});
