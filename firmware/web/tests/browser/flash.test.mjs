/*
 * Flashing from the page, in a real browser, against a fake chip that speaks the boot loader's protocol and checks every byte,
 * place and hash. No USB and no real boot loader is in it.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { padded } from '../../page/loader.js';
import { launch, openPage, ready, trouble } from '../support/browser.mjs';
import { Chip } from '../support/chip.mjs';
import { failed, firmware, info } from '../support/firmware.mjs';
import { image, partitions, program, sha256, table } from '../support/material.mjs';
import { servePage } from '../support/program.mjs';

const build = {
    'bootloader.bin': program(20001), 'partition-table.bin': table(partitions()), 'firmware.bin': program(200003),
};
const places = { 'bootloader.bin': 0, 'partition-table.bin': 0x8000, 'firmware.bin': 0x10000 };

let browser;
let server;
let folder;
let model; // the released image for the chip
before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'chiplm-page-'));
    await Promise.all(Object.entries(build).map(([name, bytes]) => writeFile(join(folder, name), bytes)));
    [browser, server] = await Promise.all([launch(), servePage(['--firmware', folder])]);
    const { board } = await (await fetch(new URL('models/combo/model.json', server.address))).json();
    model = new Uint8Array(await (await fetch(new URL(board.esp32s3.image, server.address))).arrayBuffer());
});
after(async () => {
    await browser?.close();
    await server?.end();
    await rm(folder, { recursive: true, force: true });
});

/** A program that is what flash holds: without chiplm's firmware nothing talks, without an image it says so. */
const fromFlash = {
    connect(send, chip) {
        if (chip.flash[0] !== 0xe9 || chip.flash[0x10000] !== 0xe9) {
            return { write() {}, close() {} };
        }
        const at = chip.flash.subarray(0xd0000);
        if (at[0] !== 0x43) {
            return firmware({ says: failed('model-empty', 'the model partition is empty') }).connect(send);
        }
        const crc = new DataView(at.buffer, at.byteOffset).getUint32(28, true).toString(16).padStart(8, '0');
        return firmware({ says: info({ model: { ...info().model, image_crc32: crc } }) }).connect(send);
    },
};

async function open(t, options = {}, wanted = {}) {
    const chip = new Chip({ program: fromFlash, ...options });
    const { page, context, account } = await openPage(browser, server.address, { way: 'board', chip, ...wanted });
    t.after(() => context.close().finally(() => chip.stop()));
    chip.start();
    await page.locator('#open-flash').click();
    return { page, chip, account };
}

function put(chip, firmwareToo = true) {
    if (firmwareToo) {
        for (const [name, bytes] of Object.entries(build)) {
            chip.flash.set(padded(bytes), places[name]);
        }
    }
}

/** That flash holds exactly this, and 0xFF elsewhere. */
function holds(chip, parts) {
    const want = new Uint8Array(chip.flash.length).fill(0xff);
    for (const [offset, bytes] of parts) {
        want.set(bytes, offset);
    }
    assert.ok(Buffer.compare(chip.flash, want) === 0, 'flash is not as it should be');
}

const firmwareParts = () => Object.entries(build).map(([name, bytes]) => [places[name], bytes]);
const states = (page) => page.locator('#flash-plan tbody .state').allInnerTexts();

test('firmware and model on a fresh board: every byte in its place, then the board answers', { timeout: 600000 }, async (t) => {
    const { page, chip, account } = await open(t);
    await page.locator('#flash-go').click();
    await page.getByText(/Writing: .* of .*/).waitFor();
    assert.match(await page.locator('#flash-run [role=progressbar]').getAttribute('aria-valuenow'), /^\d+$/);
    await page.getByText('The board holds what was chosen').first().waitFor({ timeout: 500000 });
    holds(chip, [...firmwareParts(), [0xd0000, model]]);
    assert.deepEqual(chip.complaints, []);
    assert.deepEqual(chip.written.map(({ offset, bytes }) => [offset, bytes]),
        [...firmwareParts(), [0xd0000, model]].map(([offset, bytes]) => [offset, padded(bytes).length]));
    await ready(page, 'board');
    assert.match(await page.locator('#facts').innerText(), /v1\.2-test/);
    assert.deepEqual(await states(page), Array(4).fill('verified'));
    assert.match(await page.locator('#flash-plan').innerText(), /0xd0000/);
    assert.deepEqual(account.errors, []);
    assert.equal(await page.evaluate(() => sessionStorage.getItem('chiplm.writing')), null);
    // All is there: a second time nothing is written.
    chip.written = [];
    await page.locator('#flash-go').click();
    await page.locator('.state', { hasText: 'unchanged' }).first().waitFor();
    assert.deepEqual(await states(page), Array(4).fill('unchanged'));
    assert.deepEqual(chip.written, []);
});

/** Picks a folder in the page, which reads it when it likes. */
async function pick(t, page, files) {
    const root = await mkdtemp(join(tmpdir(), 'chiplm-export-'));
    await Promise.all(Object.entries(files).map(([name, bytes]) => writeFile(join(root, name), bytes)));
    t.after(() => rm(root, { recursive: true }));
    await page.locator('#flash-folder').setInputFiles(root);
}

function exported(bytes) {
    const files = {
        'model.clm': bytes,
        'flasher.json': JSON.stringify({ builds: [{ chipFamily: 'ESP32-S3', parts: [{ path: 'model.clm', offset: 0xd0000 }] }] }),
    };
    const manifest = { kind: 'chiplm export', version: 1, model: 'mine', target: 'esp32s3', files: {} };
    for (const [name, content] of Object.entries(files)) {
        manifest.files[name] = { bytes: content.length, sha256: sha256(content) };
    }
    return { ...files, 'manifest.json': JSON.stringify(manifest) };
}

test('a folder that was exported: only the model, where the board has it', async (t) => {
    const { page, chip } = await open(t);
    put(chip);
    const mine = image(70001, 0x1234abcd);
    await pick(t, page, exported(mine));
    await page.getByText(/^mine: /).waitFor();
    await page.locator('#flash-go').click();
    await page.getByText('The board holds what was chosen').first().waitFor();
    holds(chip, [...firmwareParts(), [0xd0000, mine]]);
    await ready(page, 'board');
    assert.match(await page.locator('#facts').innerText(), /1234abcd/);
    assert.deepEqual(chip.complaints, []);
});

test('a board that takes its model from elsewhere, and one that does not come back', { timeout: 300000 }, async (t) => {
    const { page, chip } = await open(t);
    put(chip);
    chip.program = firmware();
    await pick(t, page, exported(image(70001, 0x1234abcd)));
    await page.getByText(/^mine: /).waitFor();
    await page.locator('#flash-go').click();
    assert.match(await trouble(page, 'other-model'), /060d3bd9; 1234abcd was written/);
    await page.evaluate(() => new MutationObserver(() => {
        globalThis.testPort.port.busy ||= document.getElementById('flash-text').textContent === 'Starting the board';
    }).observe(document.body, { childList: true, subtree: true, characterData: true }));
    await page.locator('#flash-go').click();
    assert.match(await trouble(page, 'not-back'), /All was written and compared.*Press RESET/s);
});

test('a folder that was spoiled is refused before anything is written', async (t) => {
    const { page, chip } = await open(t);
    const files = exported(image(70001));
    files['model.clm'][60000] ^= 1;
    await pick(t, page, files);
    assert.match(await trouble(page, 'damaged'), /model.clm is not the file that was written.*Export again/s);
    await page.locator('#flash-go').click();
    await trouble(page, 'no-folder');
    await pick(t, page, { 'notes.txt': 'x' });
    await trouble(page, 'folder');
    assert.deepEqual(chip.written, []);
});

test('the model alone is refused on a board with other firmware', async (t) => {
    const { page, chip } = await open(t);
    await page.locator('[name=what][value=model]').check();
    await page.locator('#flash-go').click();
    assert.match(await trouble(page, 'table'), /partition table/);
    assert.deepEqual(chip.written, []);
});

test('the wrong chip', async (t) => {
    const { page, chip } = await open(t, { id: 5 });
    await page.locator('#flash-go').click();
    assert.match(await trouble(page, 'wrong-chip'), /ESP32-C3.*Nothing was written/s);
    assert.deepEqual(chip.written, []);
});

test('a board with too little flash', async (t) => {
    const { page, chip } = await open(t, { flashId: 0x1640ef, flashBytes: 4 << 20 });
    await page.locator('#flash-go').click();
    assert.match(await trouble(page, 'fit'), /4,194,304 bytes of flash.*16 MB/s);
    assert.deepEqual(chip.written, []);
});

const writing = (page) => page.getByText(/Writing: .* of .*/).waitFor();

test('a cable that is pulled while flashing', async (t) => {
    const { page, chip } = await open(t);
    await page.locator('#flash-go').click();
    await writing(page);
    await page.evaluate(() => globalThis.testPort.pull());
    assert.match(await trouble(page, 'flash-gone'), /cable was pulled.*Writing was not finished.*flash it again/s);
    assert.ok(await page.locator('#flash-go').isEnabled());
    assert.ok(!Buffer.from(chip.flash.subarray(0xd0000, 0xd0000 + model.length)).equals(Buffer.from(model)));
});

test('the page is left while flashing: it asks, and the next page tells', async (t) => {
    const { page } = await open(t);
    await page.locator('#flash-go').click();
    await writing(page);
    let asked = 0;
    page.on('dialog', (dialog) => {
        asked++;
        dialog.accept();
    });
    await page.reload();
    assert.equal(asked, 1, 'the browser asked whether to leave');
    assert.match(await trouble(page, 'left'), /left while combo was being written.*flash it again/s);
    await page.reload();
    await page.locator('#panel-board').waitFor();
    assert.ok(await page.locator('#trouble').isHidden(), 'it is told once');
});

test('flashing is stopped', async (t) => {
    const { page, chip } = await open(t);
    await page.locator('#flash-go').click();
    await writing(page);
    await page.locator('#flash-stop').click();
    assert.match(await trouble(page, 'flash-stopped'), /only a part/);
    const { length } = chip.written;
    await page.waitForTimeout(500);
    assert.equal(chip.written.length, length);
    assert.equal(await page.evaluate(() => globalThis.testPort.port.readable), null, 'the port is free');
});

test('a server that is gone is told when a board is to be flashed', async (t) => {
    const { page } = await open(t, {}, { before: (p) => p.route('**/vendor/esptool.js', (route) => route.abort()) });
    await page.locator('#flash-go').click();
    assert.match(await trouble(page, 'fetch'), /esptool\.js.*chiplm page still running/s);
    assert.ok(await page.locator('#flash-go').isEnabled());
});
