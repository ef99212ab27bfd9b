/*
 * What can go wrong at a board, in a real browser: each has its sentence. The port is a fake one that leads to a fake chip
 * with a scripted firmware; no USB is in it.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { dial, launch, openPage, proof, ready, story, trouble, write, written } from '../support/browser.mjs';
import { Chip } from '../support/chip.mjs';
import { failed, firmware, info } from '../support/firmware.mjs';
import { servePage } from '../support/program.mjs';

let browser;
let server;
before(async () => {
    [browser, server] = await Promise.all([launch(), servePage()]);
});
after(async () => {
    await browser?.close();
    await server?.end();
});

/** The page with a board that runs a program. */
async function open(t, program, options = {}) {
    const chip = new Chip({ program });
    const { page, context, account } = await openPage(browser, server.address, { way: 'board', chip, ...options });
    t.after(() => context.close().finally(() => chip.stop())); // a program that still runs would keep this process alive
    chip.start();
    return { page, chip, account };
}

/** The same, connected. */
async function connected(t, program) {
    const all = await open(t, program);
    await all.page.locator('#connect').click();
    await ready(all.page, 'board');
    return all;
}

test('a browser without Web Serial says which have it, and the other ways stay', async (t) => {
    const { page, context } = await openPage(browser, server.address, { way: 'board', serial: false });
    t.after(() => context.close());
    assert.match(await trouble(page, 'no-serial'), /Chrome, Edge, Opera/);
    assert.ok(await page.locator('#connect').isDisabled());
    assert.ok(await page.locator('#open-flash').isDisabled());
    await page.locator('#tab-virtual').click();
    assert.ok(await page.locator('#virtual-connect').isEnabled());
    await page.locator('#tab-browser').click();
    await ready(page, 'browser');
    await dial(page, { length: 5 });
    assert.equal((await write(page)).tokens, 5);
});

test('a port that is not chosen', async (t) => {
    const { page } = await open(t, firmware());
    await page.evaluate(() => { globalThis.testPort.refuse = true; });
    await page.locator('#connect').click();
    assert.match(await trouble(page, 'no-port'), /named USB/);
});

test('a port in use', async (t) => {
    const { page } = await open(t, firmware());
    await page.evaluate(() => { globalThis.testPort.port.busy = true; });
    await page.locator('#connect').click();
    assert.match(await trouble(page, 'busy'), /another program or another page uses it.*End what uses it/s);
    await page.evaluate(() => { globalThis.testPort.port.busy = false; });
    await page.locator('#connect').click();
    await ready(page, 'board');
    assert.ok(await page.locator('#trouble').isHidden(), 'what is mended is not shown any more');
});

test('PSRAM in the wrong mode', async (t) => {
    const { page } = await open(t, firmware({
        says: failed('psram', 'no PSRAM answers in octal mode, for which this firmware was built', { psram_bytes: 0 }),
    }));
    await page.locator('#connect').click();
    assert.match(await trouble(page, 'board-psram'), /no PSRAM answers in octal mode.*N16R8/s);
    assert.match(await page.locator('#facts').innerText(), /none answers in octal mode/);
    assert.ok(await page.locator('#write').isDisabled());
    assert.ok(await page.locator('#open-flash').isEnabled());
});

test('a model that does not match the firmware', async (t) => {
    const { page } = await open(t, firmware({ says: failed('model', 'version (found 3, wanted 2): the image is of another version') }));
    await page.locator('#connect').click();
    assert.match(await trouble(page, 'board-model'), /another version.*firmware and model together/s);
    assert.ok(await page.locator('#write').isDisabled());
});

test('a digest that is not what it must be', async (t) => {
    const models = await (await fetch(new URL('models.json', server.address))).json();
    const { page } = await connected(t, firmware({ says: info({ model: { ...info().model, model_sha256: models[0].facts.model_sha256 } }) }));
    const { state, text } = await proof(page);
    assert.equal(state, 'differs');
    assert.match(text, /Do not trust/);
    assert.ok(text.includes(models[0].digest.value));
});

test('a cable that is pulled in the middle of a story, and plugged in again', async (t) => {
    const words = Array.from({ length: 100 }, (_, i) => ` word${i}`);
    const { page } = await connected(t, firmware({ words, every: 20 }));
    await page.locator('#write').click();
    await page.waitForFunction(() => document.querySelectorAll('.token').length > 5);
    await page.evaluate(() => globalThis.testPort.pull());
    assert.match(await trouble(page, 'gone'), /cable was pulled.*Plug it in again/s);
    assert.ok((await story(page)).tokens > 5, 'what came stays');
    assert.ok(await page.locator('#write').isDisabled());
    await page.evaluate(() => globalThis.testPort.plug());
    await page.getByText('plugged in', { exact: true }).waitFor();
    await page.locator('#connect').click();
    await ready(page, 'board');
    assert.equal((await write(page)).tokens, 100);
});

test('a cable that is pulled while nothing runs', async (t) => {
    const { page } = await connected(t, firmware());
    await proof(page);
    await page.evaluate(() => globalThis.testPort.pull());
    await trouble(page, 'gone');
    assert.match(await page.locator('#facts').innerText(), /nothing runs here/);
});

test('garbage on the line does not end a story; what was lost is told', async (t) => {
    const words = Array.from({ length: 40 }, (_, i) => ` w${i}`);
    const { page } = await connected(t, firmware({
        words,
        before: (i, say) => {
            say(`${String.fromCharCode(...Array.from({ length: 50 }, (_, n) => (n * 37 + i * 11) % 256)).replaceAll('\n', '')}\n`);
            say('E (1234) psram: not an answer\n');
            return i % 10 === 9; // these lines do not arrive
        },
    }));
    const { tokens, end } = await write(page);
    assert.equal(tokens, 36);
    assert.match(end, /4 tokens did not arrive whole/);
    assert.match(await page.locator('#board-log pre').textContent(), /not an answer/);
});

test('something else at the port', { timeout: 180000 }, async (t) => {
    const { page } = await open(t, {
        connect(send) {
            const timer = setInterval(() => send(new TextEncoder().encode('$GPGGA,123519,4807.038,N\r\n')), 200);
            return { write() {}, close: () => clearInterval(timer) };
        },
    });
    await page.locator('#connect').click();
    assert.match(await trouble(page, 'noise'), /Something talks/);
});

/** A firmware that answers V, and then only prints its log. */
const talker = {
    connect(send) {
        const say = (text) => send(new TextEncoder().encode(text));
        let timer;
        return {
            write(bytes) {
                if (String.fromCharCode(...bytes).includes('V')) {
                    say('V 1\r\n');
                    timer ??= setInterval(() => say('E (1234) psram: something\r\n'), 100);
                }
            },
            close: () => clearInterval(timer),
        };
    },
};

test('connecting is given up at once, and can be begun again', async (t) => {
    const { page, account } = await open(t, talker);
    for (let i = 0; i < 2; i++) {
        await page.locator('#connect').click();
        await page.locator('#board-log').waitFor();
        assert.equal(await page.locator('#disconnect').innerText(), 'Cancel');
        await page.locator('#disconnect').click();
        await page.locator('#connect:enabled').waitFor({ timeout: 5000 });
        assert.ok(await page.locator('#trouble').isHidden(), await page.locator('#trouble').innerText());
        assert.ok(await page.locator('#disconnect').isHidden());
    }
    assert.deepEqual(account.errors, []);
});

test('a board that greets and then only talks', { timeout: 180000 }, async (t) => {
    const { page } = await open(t, talker);
    await page.locator('#connect').click();
    assert.match(await trouble(page, 'silent'), /has not answered .I. for 30 seconds.*RESET/s);
});

test('what a board says of itself in another shape is told, and breaks nothing', async (t) => {
    const { page, account } = await open(t, firmware({ says: info({ memories: [null] }) }));
    await page.locator('#connect').click();
    assert.match(await trouble(page, 'answer'), /where the answer to I belongs/);
    assert.deepEqual(account.errors, []);
});

test('Disconnect in the middle of a story is no trouble', async (t) => {
    const words = Array.from({ length: 200 }, (_, i) => ` word${i}`);
    const { page, account } = await connected(t, firmware({ words, every: 20 }));
    await page.locator('#write').click();
    await page.waitForFunction(() => document.querySelectorAll('.token').length > 3);
    await page.locator('#disconnect').click();
    await page.locator('#connect').waitFor();
    const { end } = await written(page);
    assert.match(end, /ended early/);
    assert.ok(await page.locator('#trouble').isHidden(), await page.locator('#trouble').innerText());
    assert.deepEqual(account.errors, []);
});

test('a profile that cannot be read leaves the story whole', async (t) => {
    const { page } = await connected(t, firmware({ profile: '{"profile":null}' }));
    assert.equal((await write(page)).tokens, 5);
    assert.match(await trouble(page, 'answer'), /the answer to Q/);
    assert.match((await story(page)).end, /5 tokens/);
});

test('nothing at the port', { timeout: 180000 }, async (t) => {
    const { page } = await open(t, { connect: () => ({ write() {}, close() {} }) });
    await page.locator('#connect').click();
    assert.match(await trouble(page, 'silent'), /Nothing answers/);
});

test('the port of a chip beside the ESP32-S3', { timeout: 180000 }, async (t) => {
    const { page } = await open(t, { connect: () => ({ write() {}, close() {} }) }, { ids: { usbVendorId: 0x10c4, usbProductId: 0xea60 } });
    await page.locator('#any-port').click();
    assert.match(await trouble(page, 'bridge'), /other port, the one named USB/);
});

test('a board that restarts in the middle of a story', async (t) => {
    const words = Array.from({ length: 60 }, (_, i) => ` w${i}`);
    const { page, chip } = await connected(t, firmware({ words, every: 20 }));
    await page.locator('#write').click();
    await page.waitForFunction(() => document.querySelectorAll('.token').length > 3);
    chip.start(); // as a brown-out does
    assert.match(await trouble(page, 'restarted'), /restarted/);
    assert.equal((await write(page)).tokens, 60, 'it can go on');
});

test('the page is loaded anew in the middle of a story', async (t) => {
    const words = Array.from({ length: 100 }, (_, i) => ` word${i}`);
    const { page } = await connected(t, firmware({ words, every: 20 }));
    await dial(page, { start: 'The cat', seed: 77 });
    await page.locator('#write').click();
    await page.waitForFunction(() => document.querySelectorAll('.token').length > 5);
    await page.reload();
    await page.locator('#panel-board').waitFor();
    assert.deepEqual(await page.evaluate(() => ['start', 'seed'].map((id) => document.getElementById(id).value)), ['The cat', '77']);
    await page.locator('#connect').click(); // the board still writes: it is stopped first
    await ready(page, 'board');
    assert.equal((await write(page)).text, words.join(''));
});

test('Stop works at once, by key too', async (t) => {
    const words = Array.from({ length: 200 }, (_, i) => ` word${i}`);
    const { page } = await connected(t, firmware({ words, every: 50 }));
    await page.locator('#write').click();
    await page.waitForFunction(() => document.querySelectorAll('.token').length > 2);
    await page.keyboard.press('Escape');
    const { tokens, end } = await written(page);
    assert.ok(tokens < 50, `${tokens} tokens came`);
    assert.match(end, /Stopped/);
});
