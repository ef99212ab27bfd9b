/* A browser, the page in it, and a board on a port that a test holds. */
import { chromium } from 'playwright-core';

import { FakePort } from './fake-port.mjs';

/** Debian's browser, unless CHROMIUM names another. */
export function launch() {
    return chromium.launch({
        executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
        args: process.getuid?.() === 0 ? ['--no-sandbox'] : [], // which root has to do without
    });
}

/**
 * Opens the page, and keeps an account of what it did.
 * @param {import('playwright-core').Browser} browser
 * @param {string} address
 * @param {object} [options]
 * @param {import('./chip.mjs').Chip} [options.chip] on the port of the board
 * @param {string} [options.way] that the page opens with
 * @param {{usbVendorId: number, usbProductId: number}} [options.ids] of its port; the chip's own
 * @param {boolean} [options.serial] whether the browser has Web Serial
 * @param {object} [options.context] options of the context
 */
export async function openPage(browser, address, { way = 'browser', chip, ids, serial = true, context: contextOptions = {}, before } = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...contextOptions });
    const page = await context.newPage();
    page.setDefaultTimeout(120000); // of machines that do other things too
    const account = { errors: [], requests: [] };
    page.on('pageerror', (error) => account.errors.push(error.message));
    page.on('console', (message) => message.type() === 'error' && account.errors.push(message.text()));
    page.on('request', (request) => account.requests.push(request.url()));
    page.on('websocket', (socket) => account.requests.push(socket.url()));
    if (chip) {
        await wire(page, chip, ids);
    } else if (!serial) {
        await page.addInitScript(() => { delete Navigator.prototype.serial; });
    }
    await before?.(page);
    await page.goto(`${address}#${way}`);
    await page.locator(`#panel-${way}`).waitFor();
    return { page, context, account };
}

/** Replaces navigator.serial by one whose only port leads to a chip in this process. */
async function wire(page, chip, ids) {
    await page.exposeFunction('chipReceives', (text) => chip.receive(new Uint8Array(Buffer.from(text, 'base64'))));
    await page.exposeFunction('chipSignals', (signals) => chip.setSignals(signals));
    let turn = Promise.resolve();
    chip.send = (bytes) => {
        const text = Buffer.from(bytes).toString('base64');
        // A page that was left hears nothing.
        turn = turn.then(() => page.evaluate((part) => globalThis.testPort?.hear(part), text).catch(() => {}));
    };
    await page.addInitScript(`(() => {
        const FakePort = ${FakePort.toString()};
        const device = {
            receive: (bytes) => chipReceives(btoa(String.fromCharCode(...bytes))),
            setSignals: (signals) => chipSignals({ ...signals }),
        };
        const port = new FakePort(device, ${JSON.stringify(ids)});
        const serial = new EventTarget();
        let granted = sessionStorage.getItem('test.granted') !== null; // a browser keeps that
        serial.requestPort = async () => {
            if (globalThis.testPort.refuse) {
                throw new DOMException('No port selected by the user.', 'NotFoundError');
            }
            granted = true;
            sessionStorage.setItem('test.granted', 'yes');
            return port;
        };
        serial.getPorts = async () => (granted && !port.lost ? [port] : []);
        Object.defineProperty(navigator, 'serial', { value: serial });
        globalThis.testPort = {
            port,
            hear: (text) => device.send(Uint8Array.from(atob(text), (c) => c.charCodeAt(0))),
            pull() { port.pull(); serial.dispatchEvent(new Event('disconnect')); },
            plug() { port.plug(); serial.dispatchEvent(new Event('connect')); },
        };
    })();`);
}

/** Waits until a way is ready. */
export function ready(page, way) {
    return page.locator(`#tab-${way}[data-state=ready]`).waitFor();
}

/** Waits until the digest was compared, and says what it is. */
export async function proof(page) {
    await page.locator('#proof:is([data-state=equal], [data-state=differs], [data-state=alone], [data-state=failed])').waitFor();
    return { state: await page.locator('#proof').getAttribute('data-state'), text: await page.locator('#proof').innerText() };
}

/** Fills the dials. @param {Record<string, string | number>} values */
export async function dial(page, values) {
    for (const [id, value] of Object.entries(values)) {
        await page.locator(`#${id}`).fill(String(value));
    }
}

/** Lets the page write to the end, and gives what it shows. */
export async function write(page) {
    await page.locator('#write').click();
    return written(page);
}

/**
 * Writes, and stops after some tokens. The page itself clicks, since a story can be at its end before a click from outside
 * arrives.
 * @param {number} tokens that come at least
 */
export async function stopAfter(page, tokens) {
    await page.evaluate((least) => {
        const watch = new MutationObserver(() => {
            if (document.querySelectorAll('#text .token').length >= least) {
                watch.disconnect();
                document.getElementById('stop').click();
            }
        });
        watch.observe(document.getElementById('text'), { childList: true, subtree: true });
    }, tokens);
    return write(page);
}

/** Waits for the end of a story. */
export async function written(page) {
    await page.locator('#write').waitFor({ state: 'visible' });
    return story(page);
}

/** What the page shows of a story. */
export function story(page) {
    return page.evaluate(() => ({
        given: document.querySelector('#text .given')?.textContent ?? '',
        text: [...document.querySelectorAll('#text .token')].map((token) => token.textContent).join(''),
        tokens: document.querySelectorAll('#text .token').length,
        bars: document.querySelectorAll('#chart rect').length,
        end: document.getElementById('end').textContent,
    }));
}

/** The failure that is shown. */
export async function trouble(page, code) {
    await page.locator(`#trouble[data-code="${code}"]`).waitFor({ state: 'visible' });
    return page.locator('#trouble').innerText();
}
