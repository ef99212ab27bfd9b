/*
 * The virtual board, in a real browser: as the page's third way, and behind a fake serial port as its second, so that all of
 * the page's serial code runs. No USB is in it.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { facts } from '../engine/released.mjs';
import { dial, launch, openPage, proof, ready, stopAfter, story, trouble, write } from '../support/browser.mjs';
import { Chip } from '../support/chip.mjs';
import { linked } from '../support/linked.mjs';
import { servePage } from '../support/program.mjs';
import { connectWebSocket } from '../support/ws-client.mjs';

let browser;
let server;
let address; // of the virtual board
before(async () => {
    [browser, server] = await Promise.all([launch(), servePage(['--virtual'])]);
    address = (await (await fetch(new URL('page.json', server.address))).json()).virtual;
});
after(async () => {
    await browser?.close();
    await server?.end();
});

const { prompt, temperature, topk, seed, text: sample } = facts.sample;
const asReleased = { start: prompt, length: 60, temperature, topk, seed };

test('the same story in this browser and on the virtual board, with the same digest', async (t) => {
    const { page, context, account } = await openPage(browser, server.address);
    t.after(() => context.close());
    await ready(page, 'browser');
    await dial(page, asReleased);
    const here = await write(page);
    assert.ok(sample.startsWith(here.text));
    await page.locator('#tab-virtual').click(); // it connects by itself, to the board that was started with the page
    await ready(page, 'virtual');
    const { state, text } = await proof(page);
    assert.equal(state, 'equal', text);
    const there = await write(page);
    assert.equal(there.text, here.text);
    assert.equal(there.tokens, 60);
    assert.equal(there.bars, 60);
    assert.match(there.end, /The same tokens as this browser wrote/);
    assert.match(await page.locator('#facts').innerText(), /virtual board/);
    assert.ok(await page.locator('#operations tbody tr').count() > 5);
    const origins = [new URL(server.address).host, new URL(address).host];
    assert.deepEqual(account.requests.filter((url) => !origins.includes(new URL(url).host)), []);
    assert.deepEqual(account.errors, []);
});

test('the virtual board is stopped, and is free for others afterwards', async (t) => {
    const { page, context } = await openPage(browser, server.address, { way: 'virtual' });
    t.after(() => context.close());
    await ready(page, 'virtual');
    await dial(page, { ...asReleased, length: 250, seed: 3 });
    const { end, tokens } = await stopAfter(page, 4);
    assert.match(end, /^Stopped/);
    assert.ok(tokens < 250);
    await page.locator('#virtual-disconnect').click();
    await page.locator('#virtual-connect').click();
    await ready(page, 'virtual');
});

test('a virtual board that another program talks to, and one that is not there', async (t) => {
    const other = await connectWebSocket(address, () => {});
    t.after(() => other.close());
    const { page, context } = await openPage(browser, server.address, { way: 'virtual' });
    t.after(() => context.close());
    assert.match(await trouble(page, 'refused'), /another program.*one program at a time/s);
    await page.locator('#address').fill('127.0.0.1:1');
    await page.locator('#virtual-connect').click();
    assert.match(await trouble(page, 'no-virtual-board'), /--listen/);
    await page.locator('#address').fill('ws://example.org:80');
    await page.locator('#virtual-connect').click();
    await trouble(page, 'address');
    other.close();
    await other.closed;
    await page.locator('#address').fill(address);
    await page.locator('#virtual-connect').click();
    await ready(page, 'virtual');
});

test('a board by Web Serial: its identity, digest and story', async (t) => {
    const chip = new Chip({ program: linked(address) });
    const { page, context, account } = await openPage(browser, server.address, { way: 'board', chip });
    t.after(() => {
        chip.stop();
        return context.close();
    });
    chip.start();
    await page.locator('#connect').click();
    await ready(page, 'board');
    const { state, text } = await proof(page);
    assert.equal(state, 'equal', text);
    assert.ok((await page.locator('#facts').innerText()).includes(facts.model_sha256));
    await dial(page, asReleased);
    const { text: got, tokens, bars } = await write(page);
    assert.ok(sample.startsWith(got) && got.length > 100, got);
    assert.deepEqual([tokens, bars], [60, 60]);
    assert.ok(await page.locator('#operations tbody tr').count() > 5);
    // Loaded anew in the middle of a story, it writes the same one again.
    await dial(page, { length: 200 });
    await page.locator('#write').click();
    await page.waitForFunction(() => document.querySelectorAll('.token').length > 3);
    await page.reload();
    await page.locator('#connect').click();
    await ready(page, 'board');
    await dial(page, { length: 60 });
    assert.equal((await write(page)).text, got);
    // A cable that is pulled, and plugged in again.
    await dial(page, { length: 200 });
    await page.locator('#write').click();
    await page.waitForFunction(() => document.querySelectorAll('.token').length > 3);
    await page.evaluate(() => globalThis.testPort.pull());
    await trouble(page, 'gone');
    assert.ok((await story(page)).tokens > 3);
    await page.evaluate(() => globalThis.testPort.plug());
    await page.locator('#connect').click();
    await ready(page, 'board');
    await dial(page, { length: 60 });
    assert.equal((await write(page)).text, got);
    assert.deepEqual(account.errors, []);
});

test('bytes of every kind in a start give the same ids in the page and on the board', async (t) => {
    const { page, context } = await openPage(browser, server.address);
    t.after(() => context.close());
    await ready(page, 'browser');
    const starts = ['  two  spaces ', 'naïve — “quoted” 🐸\u200d', 'a\nb\\n\\x41', '\\', 'tab\there', '中文 и кириллица'];
    const texts = [];
    for (const start of starts) {
        await dial(page, { start, length: 6, temperature: 0 });
        texts.push((await write(page)).text);
    }
    await page.locator('#tab-virtual').click();
    await ready(page, 'virtual');
    for (const [i, start] of starts.entries()) {
        await dial(page, { start });
        const { text, end } = await write(page);
        assert.equal(text, texts[i], start);
        assert.match(end, /The same tokens as this browser wrote/);
    }
});
