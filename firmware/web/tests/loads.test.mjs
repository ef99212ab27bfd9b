import assert from 'node:assert/strict';
import { File } from 'node:buffer';
import test from 'node:test';

import { folderLoad, imageCrc, releasedLoad } from '../page/loads.js';
import { image, partitions, program, sha256, table } from './support/material.mjs';

const text = (object) => new TextEncoder().encode(JSON.stringify(object));

/** The files of an export with firmware, by name; change() may spoil them before, spoil() after their hashes were taken. */
function folder({ change = () => {}, spoil = () => {}, target = 'esp32s3', firmware = true } = {}) {
    const parts = firmware ? [
        { path: 'bootloader.bin', offset: 0 }, { path: 'partition-table.bin', offset: 0x8000 }, { path: 'firmware.bin', offset: 0x10000 },
    ] : [];
    const files = {
        'model.clm': image(5000),
        'flasher.json': text({ builds: [{ chipFamily: 'ESP32-S3', parts: [...parts, { path: 'model.clm', offset: 0xd0000 }] }] }),
        'placement.txt': new Uint8Array(3),
    };
    if (firmware) {
        Object.assign(files, { 'bootloader.bin': program(3000), 'partition-table.bin': table(partitions()), 'firmware.bin': program(9000) });
    }
    change(files);
    const manifest = {
        kind: 'chiplm export', version: 1, model: 'small', target,
        files: Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, { bytes: bytes.length, sha256: sha256(bytes) }])),
    };
    files['manifest.json'] = text(manifest);
    spoil(files, manifest);
    return files;
}

function picked(files, root = 'small-esp32s3') {
    return Object.entries(files).map(([name, bytes]) => {
        const file = new File([bytes], name.split('/').pop());
        Object.defineProperty(file, 'webkitRelativePath', { value: `${root}/${name}` });
        return file;
    });
}

test('a folder that export wrote', async () => {
    const files = folder();
    const load = await folderLoad(picked({ ...files, 'inner/model.clm': new Uint8Array(9) }));
    assert.equal(load.title, 'small');
    assert.equal(load.version, 'v1.2-test');
    assert.deepEqual(load.model.bytes, files['model.clm']);
    assert.equal(load.model.sha256, sha256(files['model.clm']));
    assert.deepEqual(load.firmware.map(({ offset }) => offset), [0, 0x8000, 0x10000]);
    assert.equal(imageCrc(load.model.bytes), '060d3bd9');
    const bare = await folderLoad(picked(folder({ firmware: false })));
    assert.equal(bare.firmware, null);
});

test('a folder whose model has no name has one that can be shown', async () => {
    assert.equal((await folderLoad(picked(remade((manifest) => { manifest.model = { a: 1 }; })))).title, 'a model');
});

/** A folder with another manifest. */
function remade(change) {
    return folder({ spoil: (files, manifest) => { change(manifest); files['manifest.json'] = text(manifest); } });
}

const flip = (name, at) => (files) => { files[name] = files[name].map((byte, i) => (i === at ? byte ^ 1 : byte)); };
for (const [name, files, code] of [
    ['nothing', {}, 'folder'],
    ['another manifest', { 'manifest.json': text({ kind: 'other' }) }, 'folder'],
    ['a manifest that is null', { 'manifest.json': text(null) }, 'folder'],
    ['a manifest that is no JSON', { 'manifest.json': new Uint8Array(4) }, 'damaged'],
    ['a manifest without files', { 'manifest.json': text({ kind: 'chiplm export', version: 1, target: 'esp32s3' }) }, 'folder'],
    ['a manifest whose files are null', { 'manifest.json': text({ kind: 'chiplm export', version: 1, target: 'esp32s3', files: null }) }, 'folder'],
    ['another target', folder({ target: 'host' }), 'target'],
    ['a model with a wrong byte', folder({ spoil: flip('model.clm', 4000) }), 'damaged'],
    ['firmware with a wrong byte', folder({ spoil: flip('firmware.bin', 4000) }), 'damaged'],
    ['a flasher.json with a wrong byte', folder({ spoil: flip('flasher.json', 4) }), 'damaged'],
    ['no model', folder({ spoil: (all) => delete all['model.clm'] }), 'folder'],
    ['a file that the manifest does not know', folder({ change: (all) => { all['flasher.json'] = text({ builds: [{ chipFamily: 'ESP32-S3', parts: [{ path: '../x', offset: 0 }] }] }); } }), 'folder'],
    ['no build for the chip', folder({ change: (all) => { all['flasher.json'] = text({ builds: [null, { chipFamily: 'ESP32' }] }); } }), 'target'],
    ['builds that are none', folder({ change: (all) => { all['flasher.json'] = text({ builds: 7 }); } }), 'target'],
    ['a model that is none', folder({ change: (all) => { all['model.clm'] = new Uint8Array(100); } }), 'image'],
    ['a model that was cut', folder({ change: (all) => { all['model.clm'] = all['model.clm'].slice(0, 4000); } }), 'image'],
    ['builds of another shape', folder({ change: (all) => { all['flasher.json'] = text(null); } }), 'target'],
    ['parts that are null', folder({ change: (all) => { all['flasher.json'] = text({ builds: [{ chipFamily: 'ESP32-S3', parts: [null] }] }); } }), 'target'],
    ['a part that lies nowhere', folder({ change: (all) => { all['flasher.json'] = text({ builds: [{ chipFamily: 'ESP32-S3', parts: [{ path: 'firmware.bin', offset: -1 }] }] }); } }), 'target'],
    ['a list of files', remade((manifest) => { manifest.files = []; }), 'folder'],
    ['a model that the manifest has as null', remade((manifest) => { manifest.files['model.clm'] = null; }), 'folder'],
    ['a model that has no hash', remade((manifest) => { manifest.files['model.clm'] = { bytes: 5000 }; }), 'folder'],
    ['a target that is none', remade((manifest) => { manifest.target = { a: 1 }; }), 'target'],
    ['firmware for another chip', folder({ change: (all) => { all['firmware.bin'] = program(9000, { chip: 0 }); } }), 'firmware'],
    ['a boot loader that is none', folder({ change: (all) => { all['bootloader.bin'] = new Uint8Array(9); } }), 'firmware'],
]) {
    test(`a folder with ${name} is refused`, async () => {
        await assert.rejects(folderLoad(picked(files)), (error) => error.code === code && error.todo !== '');
    });
}

/** A server with these files. */
function serve(t, files) {
    const before = globalThis.fetch;
    globalThis.fetch = async (url) => {
        const bytes = files[new URL(url).pathname.slice(1)];
        return bytes === undefined ? new Response('', { status: 404 }) : new Response(bytes);
    };
    t.after(() => { globalThis.fetch = before; });
}

const base = 'http://page.test/';
const firmwareFiles = () => ({ 'firmware/a.bin': program(3000), 'firmware/b.bin': table(partitions()), 'firmware/c.bin': program(9000) });
const listing = (files) => ({
    chip: 'esp32s3',
    files: Object.entries(files).map(([url, bytes], i) => ({ name: url, url, offset: [0, 0x8000, 0x10000][i], bytes: bytes.length, sha256: sha256(bytes) })).reverse(),
});
const entryOf = (bytes) => ({ name: 'combo', board: { esp32s3: { image: 'models/combo/esp32s3/model.clm', sha256: sha256(bytes), bytes: bytes.length } } });

test('a released model, with firmware and without', async (t) => {
    const model = image(5000);
    const firmware = firmwareFiles();
    serve(t, { ...firmware, 'models/combo/esp32s3/model.clm': model });
    let got = 0;
    const load = await releasedLoad(entryOf(model), listing(firmware), { base, onBytes: (n) => { got += n; } });
    assert.deepEqual(load.firmware.map(({ name }) => name), Object.keys(firmware));
    assert.equal(load.version, 'v1.2-test');
    assert.equal(got, model.length + Object.values(firmware).reduce((sum, { length }) => sum + length, 0));
    assert.equal((await releasedLoad(entryOf(model), null, { base })).firmware, null);
});

test('a server that gives other bytes, or none', async (t) => {
    const model = image(5000);
    serve(t, { 'models/combo/esp32s3/model.clm': image(5000) });
    await assert.rejects(releasedLoad(entryOf(model), null, { base }), { code: 'damaged' });
    await assert.rejects(releasedLoad({ name: 'combo' }, null, { base }), { code: 'target' });
    await assert.rejects(releasedLoad(entryOf(model), { chip: 'esp32' }, { base }), { code: 'firmware' });
    serve(t, {});
    await assert.rejects(releasedLoad(entryOf(model), null, { base }), { code: 'fetch' });
    globalThis.fetch = async () => { throw new TypeError('offline'); };
    await assert.rejects(releasedLoad(entryOf(model), null, { base }), { code: 'fetch' });
});
