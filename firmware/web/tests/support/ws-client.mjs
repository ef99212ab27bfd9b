/*
 * A client of a virtual board's WebSocket, for tests in node, whose older versions have none: as much of RFC 6455 as that takes.
 */
import { randomBytes } from 'node:crypto';
import { request } from 'node:http';

const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

/**
 * @param {string} address ws://…
 * @param {(bytes: Uint8Array) => void} hear
 * @returns {Promise<{write(bytes: Uint8Array): void, close(): void, closed: Promise<void>}>}
 */
export function connectWebSocket(address, hear) {
    const url = new URL(address);
    return new Promise((resolve, reject) => {
        const asked = request({
            host: url.hostname, port: url.port, path: url.pathname,
            headers: { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': 13, 'Sec-WebSocket-Key': randomBytes(16).toString('base64') },
        });
        asked.on('error', reject);
        asked.on('response', ({ statusCode }) => reject(new Error(`${address} answered ${statusCode}`)));
        asked.on('upgrade', (_, socket, head) => {
            socket.setNoDelay(true);
            const send = (kind, bytes) => socket.write(frame(kind, bytes));
            let held = head;
            const take = (bytes) => {
                held = Buffer.concat([held, bytes]);
                for (let got = unframed(held); got !== null; got = unframed(held)) {
                    held = held.subarray(got.length);
                    if (got.kind === PING) {
                        send(PONG, got.bytes);
                    } else if (got.kind === CLOSE) {
                        socket.end();
                    } else if (got.kind !== PONG) {
                        hear(new Uint8Array(got.bytes));
                    }
                }
            };
            const closed = new Promise((done) => { socket.on('close', done); });
            socket.on('error', () => {});
            socket.on('data', take);
            take(Buffer.alloc(0));
            resolve({
                write: (bytes) => send(BINARY, bytes),
                close: () => {
                    send(CLOSE, Buffer.alloc(0));
                    socket.end();
                },
                closed,
            });
        });
        asked.end();
    });
}

/** A frame of a client: masked. */
function frame(kind, bytes) {
    const long = bytes.length > 125;
    const head = Buffer.alloc(long ? 8 : 6);
    head[0] = 0x80 | kind;
    head[1] = 0x80 | (long ? 126 : bytes.length);
    if (long) {
        head.writeUInt16BE(bytes.length, 2);
    }
    const mask = randomBytes(4);
    mask.copy(head, head.length - 4);
    return Buffer.concat([head, Buffer.from(bytes.map((byte, i) => byte ^ mask[i % 4]))]);
}

/** The first frame; null while it is not complete. */
function unframed(held) {
    if (held.length < 2) {
        return null;
    }
    const short = held[1] & 0x7f;
    const from = short === 126 ? 4 : short === 127 ? 10 : 2;
    if (held.length < from) {
        return null;
    }
    const bytes = short === 126 ? held.readUInt16BE(2) : short === 127 ? Number(held.readBigUInt64BE(2)) : short;
    return held.length < from + bytes ? null : { kind: held[0] & 15, bytes: held.subarray(from, from + bytes), length: from + bytes };
}
