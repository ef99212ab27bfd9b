/* The page: three ways to run the model, one desk to write at. */
import { Desk } from './desk.js';
import { byId, el, setMeter } from './dom.js';
import { bytes, short, whole } from './format.js';
import { readServer } from './models.js';
import { keepSettings, restoreSettings } from './settings.js';
import { Trouble, troubleOf } from './trouble.js';
import { FlashView } from './view-flash.js';
import { showTrouble } from './view-trouble.js';
import { BoardWay } from './way-board.js';
import { BrowserWay } from './way-browser.js';
import { VirtualWay } from './way-virtual.js';

const say = (text) => { byId('status').textContent = text; };

/** Shows how far a model is loaded. */
function watchLoading(way) {
    const meter = byId('loading');
    const words = { module: 'Starting the engine', check: 'Checking the model', golden: 'Proving the engine' };
    way.addEventListener('loading', ({ detail: { stage, done, total } }) => {
        setMeter(meter, stage === 'image' && total ? done / total : null,
            stage === 'image' ? `Reading the model: ${bytes(done ?? 0)}${total ? ` of ${bytes(total)}` : ''}` : words[stage]);
    });
    way.addEventListener('change', () => {
        meter.hidden = way.caption !== 'starting';
        byId('start-engine').hidden = way.caption !== 'failed' || way.models.length === 0;
        if (way.caption === 'ready' && way.seconds !== null) {
            byId('panel-browser').querySelector('.lead').textContent = 'The engine of the board, compiled for this browser. It computes '
                + `the same bits, from the same weights. It started in ${short(way.seconds)} seconds.`;
        }
    });
}

function watchLine(way, { log, connect, disconnect }) {
    const box = byId(log);
    way.addEventListener('log', () => {
        box.hidden = false;
        box.querySelector('pre').textContent = way.said.join('\n');
    });
    way.addEventListener('change', () => {
        byId(connect).hidden = way.source !== null;
        byId(connect).disabled = way.busy || (way.missing ?? null) !== null;
        byId(disconnect).hidden = way.source === null && way.connecting === null;
        byId(disconnect).textContent = way.connecting === null ? 'Disconnect' : 'Cancel';
    });
}

function wireBoard(way) {
    watchLine(way, { log: 'board-log', connect: 'connect', disconnect: 'disconnect' });
    byId('connect').addEventListener('click', () => way.connect());
    byId('any-port').addEventListener('click', () => way.connect({ any: true }));
    byId('disconnect').addEventListener('click', () => way.disconnect());
    way.addEventListener('change', () => {
        const missing = way.missing !== null;
        byId('any-port').hidden = way.source !== null || missing || way.flashing !== null;
        byId('open-flash').disabled = missing || way.flashing !== null;
    });
    navigator.serial?.addEventListener('connect', () => {
        if (way.source === null && !way.busy) {
            way.set({ caption: 'plugged in' });
        }
    });
    globalThis.addEventListener('beforeunload', (event) => {
        if (way.flashing !== null) {
            event.preventDefault(); // the browser asks whether to leave
        }
    });
    way.set(way.missing === null ? {} : { trouble: way.missing, caption: 'not here' });
}

/** A virtual board that was started with the page is connected to when its way is looked at for the first time. */
function wireVirtual(way, address) {
    watchLine(way, { log: 'virtual-log', connect: 'virtual-connect', disconnect: 'virtual-disconnect' });
    byId('virtual-form').addEventListener('submit', (event) => {
        event.preventDefault();
        way.connect(byId('address').value);
    });
    byId('virtual-disconnect').addEventListener('click', () => way.disconnect());
    way.set(way.missing === null ? {} : { trouble: way.missing, caption: 'not here' });
    if (address !== null) {
        byId('virtual-lead').textContent = 'The board’s firmware as a program on this machine. It was started with this page.';
        byId('virtual-how').hidden = true;
        way.addEventListener('chosen', () => way.connect(address), { once: true });
    }
}

/** The engine starts when its way is looked at for the first time. @returns the model that is picked, by a function */
function wireBrowser(way, models) {
    watchLoading(way);
    const picker = byId('model');
    picker.append(...models.map(({ name }) => el('option', { value: name }, name)));
    byId('pick-model').hidden = models.length < 2;
    const picked = () => models.find(({ name }) => name === picker.value) ?? models[0];
    picker.addEventListener('change', () => way.start(picked()));
    byId('start-engine').addEventListener('click', () => way.start(picked()));
    return picked;
}

/** The line under the name tells of the model that is looked at: the one that runs there, else the one that would. */
function wireTagline(ways, desk, picked) {
    const line = byId('tagline');
    const unknown = line.textContent;
    const tell = (way) => {
        const facts = (way.source === null ? picked() : way.model)?.facts;
        const text = facts ? `A language model of ${whole(facts.parameters)} weights, for a five-dollar chip.` : unknown;
        if (way.id === desk.chosen && line.textContent !== text) {
            line.textContent = text;
        }
    };
    for (const way of ways) {
        way.addEventListener('change', () => tell(way));
        way.addEventListener('chosen', () => tell(way));
    }
}

/** The session's storage; where the browser allows none, one that ends with the page. */
function ownStorage() {
    try {
        return globalThis.sessionStorage;
    } catch {
        const kept = new Map();
        return {
            getItem: (key) => kept.get(key) ?? null,
            setItem: (key, value) => kept.set(key, value),
            removeItem: (key) => kept.delete(key),
        };
    }
}

/** What a part of an address stands for; one that cannot be read stands for itself. */
function decoded(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

async function start() {
    const storage = ownStorage();
    let server = { models: [], firmware: null, virtual: null };
    let missing = null;
    try {
        server = await readServer();
        if (server.models.length === 0) {
            missing = new Trouble('no-models', 'The program that serves this page has no model.', 'Name one: chiplm page RUN; or connect a board.');
        }
    } catch (error) {
        missing = troubleOf(error);
    }
    const { models, firmware } = server;
    const browser = new BrowserWay(models);
    const board = new BoardWay(models, { storage });
    const virtual = new VirtualWay(models);
    const desk = new Desk([browser, board, virtual], say);
    const picked = wireBrowser(browser, models);
    wireTagline([browser, board, virtual], desk, picked);
    wireBoard(board);
    wireVirtual(virtual, server.virtual);
    new FlashView({ way: board, models, firmware, say });
    const kept = restoreSettings(storage);
    if (server.virtual !== null) {
        byId('address').value = server.virtual; // of this start, not of one before
    }
    const [, way, address] = /^#(browser|board|virtual)(?:=(.+))?$/.exec(globalThis.location.hash) ?? [];
    if (address !== undefined) {
        byId('address').value = decoded(address);
    }
    if (missing !== null) {
        browser.set({ caption: 'failed', trouble: missing });
    } else {
        for (const model of models) {
            model.whole.then(() => desk.refresh());
        }
        browser.addEventListener('chosen', () => browser.start(picked()), { once: true });
    }
    desk.choose(board.trouble?.code === 'left' ? 'board' : way ?? kept ?? 'browser');
    globalThis.addEventListener('pagehide', () => keepSettings(storage, desk.chosen));
}

start().catch((error) => showTrouble(troubleOf(error)));
