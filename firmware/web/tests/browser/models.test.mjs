/* Models of other sizes than the released one, which the dials and the page's words go by. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { run } from '../engine/programs.mjs';
import { facts } from '../engine/released.mjs';
import { dial, launch, openPage, ready, trouble, write } from '../support/browser.mjs';
import { chiplm, servePage } from '../support/program.mjs';

const small = { context: 64, vocabulary: 512 };

let folder;
let browser;
let server;
before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'chiplm-models-'));
    await run(chiplm, 'train', '--config', 'demo.yaml', '--corpus', 'builtin', '--out', folder, '--name', 'small', '--set', 'train.tokens=2048',
        '--set', `context_length=${small.context}`, '--set', `vocab_size=${small.vocabulary}`);
    await run(chiplm, 'export', join(folder, 'small'), '--target', 'esp32s3', '--out', join(folder, 'laid-out'));
    [browser, server] = await Promise.all([launch(), servePage([join(folder, 'small'), 'combo', join(folder, 'laid-out'), '--virtual'])]);
});
after(async () => {
    await browser?.close();
    await server?.end();
    await rm(folder, { recursive: true });
});

async function open(t, options = {}) {
    const all = await openPage(browser, server.address, options);
    t.after(() => all.context.close());
    await ready(all.page, 'browser');
    return all;
}

/** Waits until a model runs in this browser. */
async function runs(page, name) {
    await ready(page, 'browser');
    await page.locator('#facts dt:text-is("Model") + dd').and(page.getByText(name, { exact: true })).waitFor();
}

const dials = (page) => page.evaluate(() => ['length', 'topk'].map((id) => Number(document.getElementById(id).value)));

test('the first Write writes, whatever the model is', async (t) => {
    const { page } = await open(t);
    assert.deepEqual(await dials(page), [small.context, 40]);
    assert.ok((await write(page)).tokens > 0);
    assert.equal(await page.locator('#hint').innerText(), '');
});

test('the dials go as far as the model that is chosen, and get back what was asked for', async (t) => {
    const { page } = await open(t);
    await page.locator('#model').selectOption('combo');
    await runs(page, 'combo');
    assert.deepEqual(await dials(page), [200, 40], 'what the page opens with');
    await dial(page, { length: 400, topk: 3000 });
    await page.locator('#model').selectOption('small');
    await runs(page, 'small');
    assert.deepEqual(await dials(page), [small.context, small.vocabulary]);
    assert.ok((await write(page)).tokens > 0);
    await page.locator('#model').selectOption('combo');
    await runs(page, 'combo');
    assert.deepEqual(await dials(page), [400, 3000]);
    await page.locator('#tab-virtual').click(); // it has the first model
    await ready(page, 'virtual');
    assert.deepEqual(await dials(page), [small.context, small.vocabulary]);
    await dial(page, { length: 10 });
    await page.locator('#tab-browser').click();
    assert.deepEqual(await dials(page), [10, 3000], 'what was typed meanwhile stays');
});

test('another model in the middle of a story is no trouble', async (t) => {
    const { page, account } = await open(t);
    await page.locator('#model').selectOption('combo');
    await runs(page, 'combo');
    await dial(page, { length: 256 });
    await page.locator('#write').click();
    await page.waitForFunction(() => document.querySelectorAll('.token').length > 3);
    await page.locator('#model').selectOption('small');
    await runs(page, 'small');
    assert.ok(await page.locator('#trouble').isHidden(), await page.locator('#trouble').innerText());
    assert.ok((await write(page)).tokens > 0);
    assert.deepEqual(account.errors, []);
});

test('a page that is loaded anew keeps its model, and what was ticked', async (t) => {
    const { page } = await open(t);
    await page.locator('#model').selectOption('combo');
    await runs(page, 'combo');
    await dial(page, { length: 400 });
    await page.locator('#profile').uncheck();
    await page.reload();
    await runs(page, 'combo');
    assert.equal(await page.locator('#model').inputValue(), 'combo');
    assert.deepEqual(await dials(page), [400, 40]);
    assert.ok(!await page.locator('#profile').isChecked());
});

test('a model that the server has no more is forgotten', async (t) => {
    const { page } = await open(t);
    await page.evaluate(() => addEventListener('pagehide', () => {
        const kept = JSON.parse(sessionStorage.getItem('chiplm.settings') ?? '{}');
        sessionStorage.setItem('chiplm.settings', JSON.stringify({ ...kept, model: 'gone', seed: '77' }));
    }));
    await page.reload();
    await runs(page, 'small');
    assert.deepEqual(await page.evaluate(() => ['model', 'seed'].map((id) => document.getElementById(id).value)), ['small', '77']);
});

test('the line under the name, and the identity, are those of the model that is looked at', async (t) => {
    const { page, account } = await open(t);
    const tagline = page.locator('#tagline');
    const own = await tagline.innerText();
    await page.locator('#model').selectOption('combo');
    await runs(page, 'combo');
    assert.ok((await tagline.innerText()).includes(facts.parameters.toLocaleString('en-GB')), await tagline.innerText());
    await page.locator('#tab-virtual').click();
    await ready(page, 'virtual');
    assert.equal(await tagline.innerText(), own);
    assert.match(await page.locator('#facts').innerText(), /laid out for the board/);
    await page.locator('#tab-browser').click();
    await page.locator('#model').selectOption('laid-out');
    await runs(page, 'laid-out'); // not by the name of another entry with the same weights
    assert.equal(await tagline.innerText(), own);
    assert.deepEqual(account.errors, []);
});

test('a page from elsewhere says that it reaches no virtual board', async (t) => {
    const { page, context } = await openPage(browser, 'http://chiplm.test/', {
        way: 'virtual',
        before: (p) => p.route('http://chiplm.test/**', async (route) => {
            const { pathname } = new URL(route.request().url());
            const answer = await fetch(new URL(pathname, server.address));
            await route.fulfill({ status: answer.status, contentType: answer.headers.get('content-type'), body: Buffer.from(await answer.arrayBuffer()) });
        }),
    });
    t.after(() => context.close());
    assert.match(await trouble(page, 'elsewhere'), /own machine alone.*chiplm\.test.*chiplm page --virtual/s);
    assert.ok(await page.locator('#virtual-connect').isDisabled());
});
