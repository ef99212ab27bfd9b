/* The tokenizer in the browser agrees with that of the trainer on every byte string. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { load } from './engine/core.mjs';
import { reference } from './engine/programs.mjs';
import { image, imagePath } from './engine/released.mjs';

let core, go;

before(async () => {
    core = await load(image);
    go = await reference(imagePath);
});

after(() => go?.end());

/** Numbers below a limit, the same in every run. */
function generator(state) {
    return (limit) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * limit);
    };
}

/** Asserts that both give the same ids, and that their tokens are the text again. */
async function compare(text) {
    const bytes = Uint8Array.from(text);
    const ids = core.encode(bytes);
    assert.equal(ids.join(' '), await go.ask(`encode ${Buffer.from(bytes).toString('hex')}`), `of ${Buffer.from(bytes).toString('hex')}`);
    assert.deepEqual(Buffer.concat(Array.from(ids, (id) => core.token(id))), Buffer.from(bytes));
}

test('random bytes', async () => {
    const random = generator(1);
    for (let i = 0; i < 1500; i++) {
        await compare(Array.from({ length: random(40) }, () => random(256)));
    }
});

test('words, numbers, marks and spaces with characters of all lengths, cut and damaged anywhere', async () => {
    const random = generator(2);
    const parts = ['Once', ' upon', ' a', ' time', 'ing', '\u2019s', "'ll", "'S", ' ', '  ', '\n', '\n\n', '\t', '\r\n', '1', '2026',
        '.', '...', '!?', '\u00e9', '\u00df', '\u0130', '\u4e16\u754c', '\u{1f600}', '\u0301', '\u2003', '\u00a0', '\u2028', '\0',
        '<|endoftext|>', '_', '\u0660', '\u2160', '\ufeff', '\ud7ff', '\u{10ffff}'].map((part) => Buffer.from(part));
    for (let i = 0; i < 3000; i++) {
        const text = Buffer.concat(Array.from({ length: 1 + random(9) }, () => parts[random(parts.length)]));
        const cut = text.subarray(random(3) === 0 ? random(text.length) : 0, random(3) === 0 ? random(text.length + 1) : undefined);
        const damaged = Uint8Array.from(cut);
        if (damaged.length > 0 && random(3) === 0) {
            damaged[random(damaged.length)] ^= 1 << random(8);
        }
        await compare(damaged);
    }
});

test('every pair of bytes of which one can start a character', async () => {
    for (let first = 0xc0; first < 0x100; first++) {
        for (const second of [0x00, 0x20, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff]) {
            await compare([first, second, 0x80, 0x61]);
        }
    }
});

test('long words and long texts', async () => {
    for (const length of [1000, 4096, 100000]) {
        await compare(Buffer.alloc(length, 'a'));
        await compare(Buffer.alloc(length, 'the cat sat. '));
        await compare(Buffer.alloc(length, 0xff));
    }
});

test('a text that is too long for the page has a sentence', () => {
    assert.throws(() => core.encode(new Uint8Array((1 << 20) + 1)), { code: 'too-long', message: /1048577 bytes/ });
    assert.equal(core.encode(new Uint8Array(1 << 20)).length, 1 << 20, 'a NUL is a token');
});
