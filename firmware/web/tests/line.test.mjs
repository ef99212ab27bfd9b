/* The lines to a board: WebSocket, serial port, boot loader's packets. */
import assert from 'node:assert/strict';
import test from 'node:test';

import { LoaderLine, slip, SlipReader } from '../page/loader-line.js';
import { choosePort, openPort, resetChip, serialStream, webSerial } from '../page/serial.js';
import { connectSocket, socketAddress } from '../page/socket.js';
import { FakePort } from './support/fake-port.mjs';

test('packets keep every byte, and are found behind noise and in pieces', () => {
    const all = Uint8Array.from({ length: 600 }, (_, i) => i & 255);
    const reader = new SlipReader();
    const sent = Uint8Array.of(...new TextEncoder().encode('ESP-ROM:esp32s3\r\n'), ...slip(all), ...slip(Uint8Array.of(0xc0, 0xdb)));
    const packets = [];
    for (let i = 0; i < sent.length; i += 7) {
        packets.push(...reader.take(sent.subarray(i, i + 7)));
    }
    assert.deepEqual(packets, [all, Uint8Array.of(0xc0, 0xdb)]);
});

test('a line that is out of step finds its way', () => {
    const reader = new SlipReader();
    assert.deepEqual(reader.take(Uint8Array.of(1, 2, 0xc0, ...slip(Uint8Array.of(3)))), [Uint8Array.of(3)]);
});

function wired() {
    const device = { got: [], signals: [], receive: (bytes) => device.got.push(...bytes), setSignals: (s) => device.signals.push(s) };
    return { device, port: new FakePort(device) };
}

test('a serial stream reads, writes, bears a disturbed line, and closes its port', async () => {
    const { device, port } = wired();
    await openPort(port);
    const stream = serialStream(port);
    assert.equal(stream.name, 'the USB port 303a:1001');
    await stream.write(Uint8Array.of(1, 2));
    assert.deepEqual(device.got, [1, 2]);
    device.send(Uint8Array.of(3));
    assert.deepEqual(await stream.read(), Uint8Array.of(3));
    const next = stream.read();
    port.disturb('FramingError');
    device.send(Uint8Array.of(4));
    assert.deepEqual(await next, Uint8Array.of(4));
    const last = stream.read();
    await stream.close();
    assert.equal(await last, null);
    assert.equal(port.readable, null);
    await openPort(port);
    assert.equal(port.opened, 2, 'it can be opened again');
});

test('a serial stream whose cable is pulled', async () => {
    const { port } = wired();
    await openPort(port);
    const stream = serialStream(port);
    const next = stream.read();
    port.pull();
    await assert.rejects(next, { code: 'gone' });
    await assert.rejects(stream.write(Uint8Array.of(1)), { code: 'gone' });
    await stream.close();
});

test('a port in use, or open already', async () => {
    const { port } = wired();
    port.busy = true;
    await assert.rejects(openPort(port), (error) => error.code === 'busy' && error.todo.includes('chiplm chat'));
    port.busy = false;
    await openPort(port);
    await assert.rejects(openPort(port), { code: 'busy' });
});

test('the chip is reset by RTS, with DTR down', async () => {
    const { device, port } = wired();
    await openPort(port);
    await resetChip(port);
    assert.deepEqual(device.signals, [{ dataTerminalReady: false, requestToSend: true }, { dataTerminalReady: false, requestToSend: false }]);
});

test('a browser without Web Serial, and a page that may not use it', () => {
    assert.throws(() => webSerial({}, true), (error) => error.code === 'no-serial' && /Chrome/.test(error.todo));
    assert.throws(() => webSerial({}, false), { code: 'insecure' });
    const serial = {};
    assert.equal(webSerial({ serial }, true), serial);
});

test('a port that is not chosen, or may not be', async () => {
    const throwing = (name) => ({ requestPort: async () => { throw new DOMException('x', name); } });
    await assert.rejects(choosePort(throwing('NotFoundError')), { code: 'no-port' });
    await assert.rejects(choosePort(throwing('SecurityError')), { code: 'forbidden' });
    await assert.rejects(choosePort(throwing('OtherError')), { name: 'OtherError' });
    const asked = [];
    const serial = { requestPort: async (options) => asked.push(options) };
    await choosePort(serial);
    await choosePort(serial, { any: true });
    assert.deepEqual(asked, [{ filters: [{ usbVendorId: 0x303a }] }, {}]);
});

test('the boot loader’s line ends at once: by a stop, by a pulled cable, by its time', async () => {
    const { port } = wired();
    const stop = new AbortController();
    const line = new LoaderLine(port, stop.signal);
    await line.connect(115200);
    await assert.rejects(line.read(20), { code: 'loader-silent' });
    const next = line.read(60000);
    stop.abort();
    await assert.rejects(next, { name: 'AbortError' });
    await assert.rejects(line.write(Uint8Array.of(1)), { name: 'AbortError' });
    await line.disconnect();
    const other = new LoaderLine(port);
    await other.connect(115200);
    const lost = other.read(60000);
    port.pull();
    await assert.rejects(lost, { code: 'gone' });
    await assert.rejects(other.setRTS(true), { code: 'gone' });
    await other.disconnect();
});

test('addresses of a virtual board', () => {
    for (const typed of ['ws://127.0.0.1:7411', ' 7411 ', '127.0.0.1:7411', 'ws://127.0.0.1:7411/']) {
        assert.equal(socketAddress(typed), 'ws://127.0.0.1:7411/');
    }
    assert.equal(socketAddress('localhost:1'), 'ws://localhost:1/');
    for (const typed of ['', 'ws://example.org:1', 'http://127.0.0.1:1', 'ws://127.0.0.1', '99999', 'a b', 'wss://127.0.0.1:1']) {
        assert.throws(() => socketAddress(typed), { code: 'address' }, typed);
    }
});

/** A WebSocket that a test moves. */
class Socket extends EventTarget {
    OPEN = 1;
    readyState = 0;
    sent = [];
    send(bytes) { this.sent.push(...bytes); }
    close() { this.readyState = 3; }
    tell(type, fields = {}) { this.dispatchEvent(Object.assign(new Event(type), fields)); }
}

async function connected() {
    let socket;
    const made = connectSocket('ws://127.0.0.1:1/', { WebSocket: class extends Socket { constructor() { super(); socket = this; } } });
    socket.readyState = 1;
    socket.tell('open');
    return { socket, stream: await made };
}

test('a WebSocket is a line', async () => {
    const { socket, stream } = await connected();
    socket.tell('message', { data: Uint8Array.of(1, 2).buffer });
    socket.tell('message', { data: 'é' });
    assert.deepEqual(await stream.read(), Uint8Array.of(1, 2));
    assert.deepEqual(await stream.read(), Uint8Array.of(0xc3, 0xa9));
    await stream.write(Uint8Array.of(3));
    assert.deepEqual(socket.sent, [3]);
    const last = stream.read();
    await stream.close();
    assert.equal(await last, null);
});

test('a WebSocket that ends by itself tells why', async () => {
    for (const [reason, code] of [['', 'gone'], ['another client is connected', 'refused']]) {
        const { socket, stream } = await connected();
        socket.readyState = 3;
        socket.tell('close', { reason });
        await assert.rejects(stream.read(), (error) => error.code === code && error.message.includes(reason));
        await assert.rejects(stream.write(Uint8Array.of(1)), { code: 'gone' });
    }
});

test('no virtual board there', async () => {
    let socket;
    const made = connectSocket('ws://127.0.0.1:1/', { WebSocket: class extends Socket { constructor() { super(); socket = this; } } });
    socket.tell('error');
    await assert.rejects(made, (error) => error.code === 'no-virtual-board' && error.todo.includes('--listen'));
});
