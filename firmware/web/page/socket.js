/* The virtual board: its line comes over a WebSocket, binary frames both ways. */
import { ByteQueue } from './byte-queue.js';
import { Trouble } from './trouble.js';

const PATIENCE = 5000; // ms to connect on one's own machine

/**
 * Refuses a page that came from elsewhere: its browser keeps it from programs of this machine, and so do they.
 * @param {string} [host] where the page came from
 * @throws {Trouble}
 */
export function ownMachine(host = globalThis.location.hostname) {
    if (host !== 'localhost' && host !== '[::1]' && !/^127(\.\d{1,3}){3}$/.test(host)) {
        throw new Trouble('elsewhere', `A virtual board talks to pages of its own machine alone, and this page came from ${host}.`,
            'Start chiplm page --virtual on this machine, and use the page that it opens.');
    }
}

/**
 * What a person typed as a WebSocket address on this machine: a port alone will do.
 * @param {string} text
 * @returns {string}
 * @throws {Trouble} for any other
 */
export function socketAddress(text) {
    const typed = text.trim();
    const shown = typed.length > 60 ? `${typed.slice(0, 60)}…` : typed;
    const full = /^\d{1,5}$/.test(typed) ? `ws://127.0.0.1:${typed}` : /^[a-z]+:\/\//i.test(typed) ? typed : `ws://${typed}`;
    let url = null;
    try {
        url = new URL(full);
    } catch {
        // is told below
    }
    const host = url?.hostname ?? '';
    if (url?.protocol === 'ws:' && host === '[::1]') { // no policy of a page can name it
        throw new Trouble('address', `“${shown}” is an address that browsers let no page talk to.`,
            'Start the board at 127.0.0.1: chiplm board --virtual MODEL --listen 127.0.0.1:7411.');
    }
    if (url === null || url.protocol !== 'ws:' || (host !== '127.0.0.1' && host !== 'localhost') || url.port === '') {
        throw new Trouble('address', `“${shown}” is no address of a virtual board.`,
            'Take the one that chiplm board prints, such as ws://127.0.0.1:7411: this page talks to this machine alone.');
    }
    return `ws://${host}:${url.port}/`;
}

/**
 * Connects to a virtual board.
 * @param {string} address as socketAddress gives it
 * @param {{signal?: AbortSignal, WebSocket?: typeof WebSocket}} [options]
 * @returns {Promise<import('./lines.js').ByteStream>}
 */
export async function connectSocket(address, { signal, WebSocket = globalThis.WebSocket } = {}) {
    signal?.throwIfAborted();
    const socket = new WebSocket(address);
    socket.binaryType = 'arraybuffer';
    const queue = new ByteQueue();
    socket.addEventListener('message', ({ data }) => {
        queue.push(typeof data === 'string' ? new TextEncoder().encode(data) : new Uint8Array(data));
    });
    await opened(socket, address, signal);
    socket.addEventListener('close', ({ reason }) => queue.end(closed(reason)));
    return {
        name: address,
        read: () => queue.read(),
        async write(bytes) {
            if (socket.readyState !== socket.OPEN) {
                throw closed('');
            }
            socket.send(bytes);
        },
        async close() {
            queue.end();
            socket.close();
        },
    };
}

function opened(socket, address, signal) {
    return new Promise((resolve, reject) => {
        const done = (settle, value) => {
            clearTimeout(timer);
            signal?.removeEventListener('abort', stop);
            settle(value);
        };
        const fail = (error) => {
            done(reject, error);
            socket.close();
        };
        const stop = () => fail(signal.reason);
        const timer = setTimeout(() => fail(unreachable(address)), PATIENCE);
        signal?.addEventListener('abort', stop);
        socket.addEventListener('open', () => done(resolve), { once: true });
        socket.addEventListener('error', () => fail(unreachable(address)), { once: true });
        socket.addEventListener('close', () => fail(unreachable(address)), { once: true });
    });
}

function unreachable(address) {
    return new Trouble('no-virtual-board', `No virtual board answers at ${address}.`,
        'Start one: chiplm board --virtual MODEL --listen 127.0.0.1:7411; then connect to the address that it prints.');
}

function closed(reason) {
    if (reason === '') {
        return new Trouble('gone', 'The virtual board is gone: its program ended.', 'Start it again, then connect.');
    }
    const told = /[.!?]$/.test(reason) ? reason : `${reason}.`;
    return new Trouble('refused', `The virtual board closed the connection: ${told}`,
        'It talks to one program at a time: end the other one, or its page, then connect.');
}
