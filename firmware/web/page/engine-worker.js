/*
 * The worker of engine.js: one model, requests by message.
 *
 * A message in has a number and a kind; the answers to it have its number. Texts are encoded at once, everything else waits
 * for its turn. "stop" ends a request between two tokens, for which the worker goes back to its messages there.
 */
import { Core } from './engine-core.js';
import { posted } from './engine-posted.js';
import { Trouble } from './trouble.js';

/** @type {Core} */
let core;
let turn = Promise.resolve(); // until the request before is through
const stopped = new Set(); // numbers of requests that are to stop

// A message to oneself comes back at once, where a timer takes up to four milliseconds. But who serves it may prefer it to
// other messages for a while, so now and then it is a timer.
const TIMER = 20; // ms without one
const channel = new MessageChannel();
let go = () => {};
let last = 0; // when the last timer ended
channel.port1.onmessage = () => go();

/** Lets messages come in. */
async function pause() {
    await new Promise((resolve) => {
        go = resolve;
        channel.port2.postMessage(null);
    });
    if (performance.now() - last > TIMER) {
        await new Promise((resolve) => { setTimeout(resolve, 0); });
        last = performance.now();
    }
}

/** @param {number} number */
function earOf(number) {
    return { pause, stopped: () => stopped.has(number) };
}

/**
 * Reads a file, and tells how far it is.
 * @param {string} url @param {string} what for the sentence of a failure @param {(done: number, total: number | null) => void} tell
 * @returns {Promise<Uint8Array>}
 */
async function read(url, what, tell) {
    const missing = (why) => new Trouble('fetch', `${what} could not be read from ${url}: ${why}.`,
        'Is the program that serves this page still running? Then load the page anew.');
    try {
        const response = await fetch(url);
        if (!response.ok) {
            throw missing(`the server says ${response.status} ${response.statusText}`.trim());
        }
        const length = Number(response.headers.get('content-length'));
        const parts = [];
        let done = 0;
        for (const reader = response.body.getReader(); ;) {
            const part = await reader.read();
            if (part.done) {
                break;
            }
            parts.push(part.value);
            done += part.value.length;
            tell(done, length >= done ? length : null);
        }
        return new Uint8Array(await new Blob(parts).arrayBuffer());
    } catch (error) {
        throw error.code === 'fetch' ? error : missing(error.message);
    }
}

/** SHA-256 as hex; null in a page that is neither https nor of this machine, where browsers have none. */
async function hashOf(bytes) {
    if (globalThis.crypto?.subtle === undefined) {
        return null;
    }
    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
    return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The bytes of all tokens, one behind another, and where each ends. */
function tokenTable() {
    const tokens = Array.from({ length: core.info.vocab_size }, (_, id) => core.token(id));
    const ends = new Uint32Array(tokens.length);
    let end = 0;
    tokens.forEach((token, id) => { ends[id] = end += token.length; });
    const bytes = new Uint8Array(end);
    tokens.forEach((token, id) => bytes.set(token, ends[id] - token.length));
    return { ends, bytes };
}

const kinds = {
    async start({ wasm, image }, number) {
        const tell = (stage, done = null, total = null) => self.postMessage({ number, kind: 'progress', stage, done, total });
        tell('module');
        const [module, file] = await Promise.all([
            typeof wasm === 'string' ? read(wasm, 'The engine', () => {}) : wasm,
            typeof image === 'string' ? read(image, 'The model', (done, total) => tell('image', done, total)) : new Uint8Array(image),
        ]);
        core = await Core.load({ wasm: module, image: file, onStage: tell });
        return { info: { ...core.info, image_sha256: await hashOf(file) }, tokens: tokenTable() };
    },

    generate: (request, number) => core.generate(request, earOf(number), {
        onPrompt: (ms) => self.postMessage({ number, kind: 'prompt', ms }),
        onToken: (token) => self.postMessage({ number, kind: 'token', token }),
    }),

    digest: ({ n, mode }, number) => core.digest(n, mode, earOf(number)),

    profile: () => core.profile(),

    encode: ({ text }) => core.encode(text),
};

/** @param {{number: number, kind: string, what: object}} message */
async function answer({ number, kind, what }) {
    try {
        self.postMessage({ number, kind: 'done', result: await kinds[kind](what, number) });
    } catch (error) {
        self.postMessage({ number, kind: 'failed', error: posted(error) });
    }
    stopped.delete(number);
}

self.onmessage = ({ data }) => {
    if (data.kind === 'stop') {
        stopped.add(data.number);
    } else if (data.kind === 'encode') {
        answer(data);
    } else {
        turn = turn.then(pause).then(() => answer(data)); // a stop may wait behind a request
    }
};
