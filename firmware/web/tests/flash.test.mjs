import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import test from 'node:test';

import * as esptool from '../dist/vendor/esptool.js';

import { flash } from '../page/flash.js';
import { padded } from '../page/loader.js';
import { Chip } from './support/chip.mjs';
import { FakePort } from './support/fake-port.mjs';
import { load, partitions, program, table } from './support/material.mjs';

const stub = await esptool.getStubJsonByChipName('ESP32-S3');
const helper = [stub.decodedText, stub.decodedData].map((bytes) => Buffer.from(bytes));

function bench(options = {}) {
    const chip = new Chip({ helper, ...options });
    const port = new FakePort(chip);
    const run = (rest) => flash({ esptool, port, ...rest });
    return { chip, port, run };
}

/** That flash holds a load at these places, and every byte beside them is as it was before. */
function holds(chip, parts, before) {
    const want = before.slice();
    for (const { offset, bytes } of parts) {
        const whole = padded(bytes);
        want.fill(0xff, offset, Math.ceil((offset + whole.length) / 0x1000) * 0x1000); // whole sectors are erased
        want.set(whole, offset);
    }
    assert.ok(Buffer.compare(chip.flash, want) === 0, 'flash is not as it should be');
}

test('a fresh board gets firmware and model, every byte in its place', async () => {
    const { chip, port, run } = bench();
    chip.flash.set(randomBytes(1 << 20), 0); // another program was on it
    chip.registers.set(0x6000812c, 5); // and asked for the boot loader at every reset
    const before = chip.flash.slice();
    const goods = load();
    const steps = [];
    const shares = [];
    let writing = 0;
    const writes = await run({
        load: goods, onStep: (step) => steps.push(step), onProgress: ({ done, total }) => shares.push(done / total),
        onWriting: () => writing++,
    });
    holds(chip, [...goods.firmware, { ...goods.model, offset: 0xd0000 }], before);
    assert.deepEqual(writes.map(({ offset, same }) => [offset, same]), [[0, false], [0x8000, false], [0x10000, false], [0xd0000, false]]);
    assert.deepEqual(chip.written.map(({ offset }) => offset), [0, 0x8000, 0x10000, 0xd0000]);
    assert.deepEqual([...new Set(steps)], ['connect', 'compare', 'write', 'verify', 'restart']);
    assert.equal(shares.at(-1), 1);
    assert.deepEqual(shares, [...shares].sort((a, b) => a - b), 'progress goes forward');
    assert.equal(writing, 1);
    assert.equal(chip.registers.get(0x6000812c), 4, 'no boot loader is asked for any more');
    assert.equal(chip.mode, 'program', 'the chip was started');
    assert.equal(port.readable, null, 'the port is closed');
    assert.deepEqual(chip.complaints, []);
});

test('only what differs is written: the model alone when the firmware is right, nothing when all is', async () => {
    const { chip, run } = bench();
    const goods = load();
    await run({ load: goods });
    const other = { ...goods, model: load().model };
    chip.written = [];
    const before = chip.flash.slice();
    const writes = await run({ load: other });
    assert.deepEqual(writes.map(({ same }) => same), [true, true, true, false]);
    assert.deepEqual(chip.written, [{ offset: 0xd0000, bytes: padded(other.model.bytes).length }]);
    holds(chip, [{ ...other.model, offset: 0xd0000 }], before);
    chip.written = [];
    let writing = 0;
    await run({ load: other, onWriting: () => writing++ });
    assert.deepEqual([chip.written, writing], [[], 0]);
    assert.deepEqual(chip.complaints, []);
});

test('a model alone goes where the board’s own table has it', async () => {
    const { chip, run } = bench();
    chip.flash.set(table(partitions({ offset: 0x200000, bytes: 0x300000 }), { checksum: false }), 0x8000);
    const before = chip.flash.slice();
    const goods = load();
    await run({ load: goods, modelOnly: true });
    holds(chip, [{ ...goods.model, offset: 0x200000 }], before);
    await run({ load: { ...goods, firmware: null } });
    assert.equal(chip.written.length, 1);
});

for (const [name, at] of [
    ['no table', new Uint8Array(0)], ['no model in it', table(partitions(null))],
    ['a damaged table', Uint8Array.from(table(partitions()), (byte, i) => (i === 40 ? byte ^ 1 : byte))],
]) {
    test(`a model alone is refused on a board with ${name}, and nothing is written`, async () => {
        const { chip, port, run } = bench();
        chip.flash.set(at, 0x8000);
        await assert.rejects(run({ load: load(), modelOnly: true }), { code: 'table' });
        assert.deepEqual([chip.written, port.readable, chip.mode], [[], null, 'program']);
    });
}

test('what does not fit is refused before anything is written', async () => {
    const small = bench({ flashId: 0x1640ef, flashBytes: 4 << 20 });
    await assert.rejects(small.run({ load: load({ modelBytes: (4 << 20) - 0xd0000 + 1 }) }), { code: 'fit' });
    const narrow = bench();
    narrow.chip.flash.set(table(partitions({ offset: 0xd0000, bytes: 0x10000 })), 0x8000);
    await assert.rejects(narrow.run({ load: load(), modelOnly: true }), { code: 'fit' });
    const unknown = bench({ flashId: 0xffffff });
    await assert.rejects(unknown.run({ load: load() }), { code: 'flash-id' });
    assert.deepEqual([small, narrow, unknown].map(({ chip }) => chip.written.length), [0, 0, 0]);
});

for (const [name, options, code] of [
    ['another chip of the family', { id: 5 }, 'wrong-chip'], ['a chip that nobody knows', { id: 999 }, 'wrong-chip'],
    ['the first chip of the family', { id: 0, magic: 0x00f01d83 }, 'wrong-chip'],
    ['secure boot', { flags: 1 }, 'locked'], ['encrypted flash', { crypt: 1 }, 'locked'],
]) {
    test(`${name} is refused, and left running`, async () => {
        const { chip, port, run } = bench({ ...options, helper: undefined });
        await assert.rejects(run({ load: load() }), (error) => error.code === code && error.todo.includes('Nothing was written'));
        assert.deepEqual([chip.written, port.readable, chip.mode], [[], null, 'program']);
    });
}

test('a port in use', async () => {
    const { port, run } = bench();
    port.busy = true;
    await assert.rejects(run({ load: load() }), { code: 'busy' });
});

test('a board whose boot loader does not answer', { timeout: 60000 }, async () => {
    const { chip, port, run } = bench();
    chip.onOperation = () => { throw new Error('silent'); };
    await assert.rejects(run({ load: load() }), { code: 'loader-silent' });
    assert.equal(port.readable, null);
});

test('a cable that is pulled while writing', async () => {
    const { chip, port, run } = bench();
    await assert.rejects(run({ load: load(), onProgress: ({ done }) => done > 100000 && port.pull() }), (error) => (
        error.code === 'flash-gone' && error.todo.includes('flash it again')));
    port.plug();
    const goods = load();
    await run({ load: goods });
    holds(chip, [...goods.firmware, { ...goods.model, offset: 0xd0000 }], new Uint8Array(1 << 24).fill(0xff));
});

test('a cable that is pulled before', async () => {
    const { port, run } = bench();
    await assert.rejects(run({ load: load(), onStep: (step) => step === 'compare' && port.pull() }), { code: 'gone' });
});

test('Stop while writing, and before', async () => {
    const { chip, port, run } = bench();
    const stop = new AbortController();
    await assert.rejects(run({ load: load(), signal: stop.signal, onProgress: ({ done }) => done > 100000 && stop.abort() }),
        { code: 'flash-stopped' });
    assert.equal(port.readable, null);
    const early = new AbortController();
    const begun = chip.written.length;
    await assert.rejects(run({ load: load(), signal: early.signal, onStep: (step) => step === 'compare' && early.abort() }),
        { name: 'AbortError' });
    assert.equal(chip.written.length, begun);
    assert.equal(port.readable, null);
});

test('flash that does not keep what is written', async () => {
    const { chip, run } = bench();
    chip.onOperation = (op) => {
        if (op === 0x13 && chip.written.length === 4) {
            chip.flash[0x10123] ^= 4;
        }
    };
    await assert.rejects(run({ load: load() }), { code: 'verify' });
});

test('a line that is disturbed', async () => {
    const { chip, port, run } = bench();
    let disturbed = false;
    chip.onOperation = (op) => {
        if (op === 0x11 && !disturbed) {
            disturbed = true;
            port.disturb('BreakError'); // what is read is lost, what follows is not
        }
    };
    const goods = load();
    await run({ load: goods });
    holds(chip, [...goods.firmware, { ...goods.model, offset: 0xd0000 }], new Uint8Array(1 << 24).fill(0xff));
    assert.ok(disturbed);
});

test('a version is read of a program, and none of other bytes', async () => {
    const { versionOf } = await import('../page/loads.js');
    assert.equal(versionOf(program(4096, { version: '1a2b3c4-dirty' })), '1a2b3c4-dirty');
    assert.equal(versionOf(new Uint8Array(4096)), '');
    assert.equal(versionOf(new Uint8Array(3)), '');
});
