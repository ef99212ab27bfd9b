import assert from 'node:assert/strict';
import test from 'node:test';

import { escape, unescape } from '../page/escapes.js';

test('every byte can be sent', () => {
    const all = Uint8Array.from({ length: 256 }, (_, i) => i);
    const line = escape(all);
    assert.ok(!/[\u0000-\u001f\u007f]/.test(line));
    // What a board makes of it: escapes, and bytes as they are.
    const back = line.replace(/\\(n|\\|x([0-9a-f]{2}))/g, (_, kind, hex) => (
        kind === 'n' ? '\n' : kind === '\\' ? '\\' : String.fromCharCode(Number.parseInt(hex, 16))));
    assert.deepEqual(Uint8Array.from(back, (c) => c.charCodeAt(0)), all);
});

test('bytes of an answer', () => {
    assert.deepEqual(unescape(' a\\n\\\\\\x00\\xfF'), Uint8Array.of(32, 97, 10, 92, 0, 255));
    assert.deepEqual(unescape(''), Uint8Array.of());
    for (const wrong of ['\\', '\\q', '\\x', '\\x1', '\\xg0', '\u00e9', 'a\tb', '\u007f']) {
        assert.equal(unescape(wrong), null, wrong);
    }
});
