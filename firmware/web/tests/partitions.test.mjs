import assert from 'node:assert/strict';
import test from 'node:test';

import { modelPartition, parseTable } from '../page/partitions.js';
import { partitions, table } from './support/material.mjs';

test('a table is read, with its checksum and without', () => {
    for (const checksum of [true, false]) {
        const read = parseTable(table(partitions(), { checksum }));
        assert.deepEqual(read.map(({ name, offset, bytes }) => ({ name, offset, bytes })),
            partitions().map(({ name, offset, bytes }) => ({ name, offset, bytes })));
        assert.equal(modelPartition(read).offset, 0xd0000);
    }
});

const spoiled = (at, value) => Uint8Array.from(table(partitions()), (byte, i) => (i === at ? value : byte));
for (const [name, bytes] of [
    ['no bytes', new Uint8Array(0)], ['an empty one', new Uint8Array(0xc00).fill(0xff)], ['zeros', new Uint8Array(0xc00)],
    ['a wrong checksum', spoiled(32 + 12, 0x78)], ['a wrong start of an entry', spoiled(32, 0)],
    ['a place inside of a sector', table([{ name: 'a', offset: 0x9001, bytes: 0x1000 }])],
    ['a place before the table', table([{ name: 'a', offset: 0x4000, bytes: 0x1000 }])],
    ['a partition without bytes', table([{ name: 'a', offset: 0x9000, bytes: 0 }])],
    ['no end', table(Array.from({ length: 95 }, (_, i) => ({ name: 'a', offset: 0x9000, bytes: 0x1000 }))).fill(0xaa, 95 * 32).slice(0, 95 * 32)],
]) {
    test(`a table with ${name} is refused`, () => {
        assert.throws(() => parseTable(bytes), { code: 'table' });
    });
}

test('a table of other firmware', () => {
    assert.throws(() => modelPartition(parseTable(table(partitions(null)))), (error) => error.code === 'table' && error.message.includes('factory'));
});
