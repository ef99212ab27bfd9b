/* The model in this browser, in a real browser. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { facts } from '../engine/released.mjs';
import { dial, launch, openPage, proof, ready, stopAfter, trouble, write, written } from '../support/browser.mjs';
import { servePage } from '../support/program.mjs';

const context = facts.context_length;

let browser;
let server;
before(async () => {
    [browser, server] = await Promise.all([launch(), servePage()]);
});
after(async () => {
    await browser?.close();
    await server?.end();
});

async function open(t, options = {}) {
    const all = await openPage(browser, server.address, options);
    t.after(() => all.context.close());
    await ready(all.page, 'browser');
    return all;
}

test('a story as its release has it, with the digest of the reference, and no request to anybody else', async (t) => {
    const { page, account } = await open(t);
    const models = await (await fetch(new URL('models.json', server.address))).json();
    const { state, text } = await proof(page);
    assert.equal(state, 'equal', text);
    assert.ok(text.includes(models[0].digest.value), text);
    const { prompt, temperature, topk, seed, text: sample } = facts.sample;
    await dial(page, { start: prompt, length: context, temperature, topk, seed });
    const { given, text: story, tokens, bars, end } = await write(page);
    assert.equal(given, prompt);
    assert.equal(story, sample);
    assert.equal(bars, tokens, 'a bar for every token');
    assert.match(end, new RegExp(`^The model ended the story. ${tokens} tokens.`));
    for (const id of ['read-prompt', 'read-token', 'read-speed', 'read-bytes']) {
        assert.match(await page.locator(`#${id}`).innerText(), /\d/, id);
    }
    await page.locator('#prediction', { hasText: 'cost model' }).waitFor(); // the server makes it meanwhile
    assert.match(await page.locator('#prediction').innerText(), /times of this computer. For the chip, the cost model says [\d.]+ ms/);
    assert.ok(await page.locator('#operations tbody tr').count() > 5, 'where the time goes');
    const origin = new URL(server.address).origin;
    assert.deepEqual(account.requests.filter((url) => !url.startsWith(origin)), []);
    assert.deepEqual(account.errors, []);
});

test('the same seed writes the same story, another writes another, and nothing at temperature 0 depends on it', async (t) => {
    const { page } = await open(t);
    await dial(page, { length: 20, seed: 5 });
    const first = await write(page);
    assert.deepEqual(await write(page), first);
    await dial(page, { seed: 6 });
    assert.notEqual((await write(page)).text, first.text);
    await dial(page, { temperature: 0, seed: 5 });
    const still = await write(page);
    await dial(page, { seed: 6 });
    assert.equal((await write(page)).text, still.text);
});

test('a story is stopped at once, and the next one is whole', async (t) => {
    const { page } = await open(t);
    await dial(page, { length: context });
    const stopped = await stopAfter(page, 4);
    assert.match(stopped.end, /^Stopped/);
    assert.ok(stopped.tokens < context);
    await dial(page, { length: 10 });
    assert.equal((await write(page)).tokens, 10);
});

test('the page is used by keys alone', async (t) => {
    const { page } = await open(t);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter'); // skips to the story
    await page.locator('#start').focus();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('A dog');
    for (const [id, value] of [['length', '12'], ['temperature', '0'], ['topk', '40'], ['seed', '3']]) {
        await page.keyboard.press('Tab');
        assert.equal(await page.evaluate(() => document.activeElement.id), id);
        await page.keyboard.press('Control+a');
        await page.keyboard.type(value);
    }
    await page.keyboard.press('Enter');
    const { given, tokens } = await written(page);
    assert.deepEqual([given, tokens], ['A dog', 12]);
    const slider = page.locator('#chart [role=slider]');
    await slider.focus();
    await page.keyboard.press('End');
    assert.match(await slider.getAttribute('aria-valuetext'), /^token 12, “.*”, [\d.]+ milliseconds$/);
    assert.equal(await page.locator('.token.on').count(), 1);
    await page.locator('#tab-browser').focus();
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'tab-board');
    assert.ok(await page.locator('#panel-board').isVisible());
});

test('a dial that is out of its range is told, and nothing is written', async (t) => {
    const { page } = await open(t);
    for (const [id, value] of [['length', context + 1], ['temperature', '-1'], ['topk', facts.vocab_size + 1], ['seed', '18446744073709551616']]) {
        await dial(page, { length: 10, temperature: 0.7, topk: 40, seed: 1, [id]: value });
        await page.locator('#write').click();
        assert.match(await page.locator('#hint').innerText(), /is a (whole )?number from 0|from 1/);
        assert.equal(await page.evaluate(() => document.activeElement.id), id);
        assert.deepEqual(await page.locator('[aria-invalid=true]').evaluateAll((all) => all.map((dial) => dial.id)), [id]);
    }
    assert.equal(await page.locator('.token').count(), 0);
    await dial(page, { seed: 1, start: 'word '.repeat(3 * context) });
    await page.locator('#write').click();
    await page.locator('#trouble').waitFor();
    assert.match(await page.locator('#trouble').innerText(), new RegExp(`tokens, the context of this model ${context}.*Shorten`, 's'));
    assert.ok(await page.locator('#paper').isHidden(), 'no token came');
    assert.ok(await page.locator('#times').isHidden());
});

test('every thing that can be used has a name, and regions that speak do not flood', async (t) => {
    const { page, context: own } = await open(t);
    await page.evaluate(() => {
        globalThis.heard = [];
        new MutationObserver(() => globalThis.heard.push(document.getElementById('status').textContent))
            .observe(document.getElementById('status'), { childList: true, characterData: true, subtree: true });
    });
    await dial(page, { length: 100 });
    await write(page);
    const heard = await page.evaluate(() => globalThis.heard);
    assert.ok(heard.length <= 3, `it spoke ${heard.length} times: ${heard.join(' / ')}`);
    assert.match(heard.at(-1), /100 tokens, [\d.,]+ a second/);
    const session = await own.newCDPSession(page);
    for (const way of ['browser', 'board', 'virtual']) {
        await page.locator(`#tab-${way}`).click();
        const { nodes } = await session.send('Accessibility.getFullAXTree');
        const nameless = nodes.filter(({ ignored, role, name, properties }) => !ignored
            && properties?.some((p) => p.name === 'focusable' && p.value.value) && !name?.value && role.value !== 'RootWebArea');
        assert.deepEqual(nameless.map(({ role }) => role.value), [], way);
    }
});

test('small screens, large type and dark mode: nothing is cut off', async (t) => {
    for (const options of [{ viewport: { width: 360, height: 740 } }, { viewport: { width: 320, height: 640 }, colorScheme: 'dark' }, { viewport: { width: 768, height: 900 } }]) {
        const { page } = await open(t, { context: options });
        await dial(page, { length: 30 });
        await write(page);
        for (const way of ['board', 'virtual', 'browser']) {
            await page.locator(`#tab-${way}`).click();
            const wide = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
            assert.ok(wide[0] <= wide[1], `${way}: ${wide[0]} of ${wide[1]} pixels`);
        }
    }
});

test('the longest names of models and the longest starts leave the page its width and its place', async (t) => {
    const { page } = await open(t, {
        context: { viewport: { width: 360, height: 740 } },
        before: (p) => p.route('**/models.json', async (route) => {
            const response = await route.fetch();
            const [model] = await response.json();
            await route.fulfill({ response, json: [model, { ...model, name: 'a-run-with-a-name-'.repeat(8) }] });
        }),
    });
    await page.locator('#tab-browser').click();
    assert.ok(await page.locator('#model').isVisible());
    await dial(page, { start: 'word '.repeat(2000) });
    const { wide, start } = await page.evaluate(() => ({
        wide: document.documentElement.scrollWidth, start: document.getElementById('start').offsetHeight,
    }));
    assert.ok(wide <= 360, `${wide} pixels`);
    assert.ok(start < 740, `${start} pixels`);
});

test('a story of one token has no chart, for there is no time to draw; the next one has', async (t) => {
    const { page } = await open(t);
    await dial(page, { length: 1 });
    assert.equal((await write(page)).tokens, 1);
    assert.ok(await page.locator('#chart').isHidden());
    await dial(page, { length: 12 });
    await write(page);
    assert.ok(await page.locator('#chart').isVisible());
    const { cut, tall } = await page.evaluate(() => {
        const top = 100 / -document.querySelector('#chart g').transform.baseVal.consolidate().matrix.d; // milliseconds
        const bars = [...document.querySelectorAll('#chart rect')];
        return { cut: bars.map((bar) => bar.classList.contains('cut')), tall: bars.map((bar) => bar.height.baseVal.value > top * (1 + 1e-6)) };
    });
    assert.deepEqual(cut, tall, 'coloured is what is cut on the scale of now');
});

test('a page that is loaded anew keeps what was typed', async (t) => {
    const { page } = await open(t);
    await dial(page, { start: 'Two cats', length: 33, seed: 9 });
    await page.reload();
    await ready(page, 'browser');
    assert.deepEqual(await page.evaluate(() => ['start', 'length', 'seed'].map((id) => document.getElementById(id).value)), ['Two cats', '33', '9']);
});

test('files that the server does not give are told', async (t) => {
    const { page, context: own } = await openPage(browser, server.address, {
        before: (p) => p.route('**/models.json', (route) => route.fulfill({ status: 404, body: '' })),
    });
    t.after(() => own.close());
    await page.locator('#trouble').waitFor();
    assert.match(await page.locator('#trouble').innerText(), /models.json.*chiplm page still running/s);
    const none = await openPage(browser, server.address, { before: (p) => p.route('**/models.json', (route) => route.fulfill({ json: [] })) });
    t.after(() => none.context.close());
    await none.page.locator('#trouble').waitFor();
    assert.match(await none.page.locator('#trouble').innerText(), /has no model.*chiplm page RUN/s);
    const cut = await openPage(browser, server.address, {
        before: (p) => p.route('**/model.clm', async (route) => {
            const response = await route.fetch();
            await route.fulfill({ response, body: (await response.body()).subarray(0, 100000) });
        }),
    });
    t.after(() => cut.context.close());
    await cut.page.locator('#trouble').waitFor();
    assert.match(await cut.page.locator('#trouble').innerText(), /engine refuses this image/i);
});

/** What the browser itself says of a request that fails is no fault of the page. */
const faults = (account) => account.errors.filter((text) => !/Failed to load resource|ERR_/.test(text));

for (const [name, files] of Object.entries({
    'a list of something': { 'models.json': [{ name: 'x' }] }, 'no list': { 'models.json': {} }, 'a list of nothing': { 'models.json': [null] },
    'a page that is null': { 'page.json': null }, 'firmware that is a number': { 'firmware.json': 7 },
})) {
    test(`a server with other files is told, and nothing else breaks: ${name}`, async (t) => {
        const [[file, value]] = Object.entries(files);
        const { page, context: own, account } = await openPage(browser, server.address, {
            before: (p) => p.route(`**/${file}`, (route) => route.fulfill({ status: 200, contentType: 'application/json', body: JSON.stringify(value) })),
        });
        t.after(() => own.close());
        assert.ok((await trouble(page, 'fetch')).includes(file));
        assert.ok(await page.locator('#start-engine').isHidden(), 'nothing could start');
        await page.locator('#tab-board').click();
        assert.ok(await page.locator('#connect').isVisible());
        assert.deepEqual(faults(account), []);
    });
}

test('an address that cannot be decoded is shown as it is', async (t) => {
    const { page, context: own, account } = await openPage(browser, server.address);
    t.after(() => own.close());
    await page.goto('about:blank');
    await page.goto(`${server.address}#virtual=%zz`);
    await page.locator('#virtual-connect').click();
    await trouble(page, 'address');
    assert.equal(await page.locator('#address').inputValue(), '%zz');
    assert.deepEqual(faults(account), []);
});

for (const name of ['Worker', 'WebAssembly']) {
    test(`a browser without ${name} says so`, async (t) => {
        const { page, context: own, account } = await openPage(browser, server.address, { before: (p) => p.addInitScript((what) => { delete globalThis[what]; }, name) });
        t.after(() => own.close());
        assert.match(await trouble(page, 'no-engine'), name === 'Worker' ? /no workers/ : /no WebAssembly/);
        assert.deepEqual(faults(account), []);
    });
}

test('a server that is gone is told when a model starts', async (t) => {
    const { page, context: own, account } = await openPage(browser, server.address, { way: 'board', serial: false });
    t.after(() => own.close());
    await own.setOffline(true);
    await page.locator('#tab-browser').click();
    assert.match(await trouble(page, 'fetch'), /chiplm page still running/);
    await own.setOffline(false);
    await page.locator('#start-engine').click();
    await ready(page, 'browser');
    assert.deepEqual(faults(account), []);
});

test('a start that is too long to be kept leaves the other settings', async (t) => {
    const { page } = await open(t);
    await page.evaluate(() => { document.getElementById('start').value = 'x'.repeat(6e6); });
    await dial(page, { seed: 9 });
    await page.reload();
    await ready(page, 'browser');
    assert.deepEqual(await page.evaluate(() => ['start', 'seed'].map((id) => document.getElementById(id).value)), ['Once upon a time', '9']);
});
