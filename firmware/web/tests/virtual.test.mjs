/* The protocol's client against the firmware itself: a virtual board. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Board } from '../page/board.js';
import { ByteQueue } from '../page/byte-queue.js';
import { facts, imagePath } from './engine/released.mjs';
import { virtualBoard } from './support/program.mjs';
import { connectWebSocket } from './support/ws-client.mjs';

let program;
before(async () => {
    program = await virtualBoard(imagePath, ['--sram', '16777216']); // the image was made for a computer, not for the chip
});
after(() => program?.end());

/** A stream to the board, and what a test may do to it. */
async function line() {
    const queue = new ByteQueue();
    const socket = await connectWebSocket(program.address, (bytes) => queue.push(bytes));
    socket.closed.then(() => queue.end());
    return {
        socket,
        stream: {
            name: program.address,
            read: () => queue.read(),
            write: async (bytes) => socket.write(bytes),
            async close() {
                queue.end();
                socket.close();
                await socket.closed;
            },
        },
    };
}

async function open(t, onWrite = () => {}) {
    const { stream, socket } = await line();
    const { write } = stream;
    stream.write = (bytes) => write(bytes).then(() => onWrite(String.fromCharCode(...bytes)));
    const board = await Board.open(stream);
    t.after(() => board.close());
    return { board, socket };
}

const text = (tokens) => Buffer.concat(tokens.map(({ bytes }) => bytes)).toString();
const { prompt, temperature, topk, seed, text: sample } = facts.sample;
const released = { text: prompt, tokens: facts.context_length, temperature, topK: topk, seed };

async function write(board, request) {
    const tokens = [];
    const end = await board.generate({ ...request, onToken: (token) => tokens.push(token) });
    return { end, tokens, text: text(tokens) };
}

test('the firmware says what it is, and writes the story of the release', { timeout: 600000 }, async (t) => {
    const { board } = await open(t);
    assert.equal(board.trouble, null);
    assert.equal(board.info.sha256, facts.model_sha256);
    assert.equal(board.info.board.protocol, 1);
    assert.equal(await board.profile(), null);
    const { end, tokens, text: got } = await write(board, { ...released, profile: true });
    assert.equal(got, sample);
    assert.deepEqual([end.why, end.count, end.lost], ['end', tokens.length, 0]);
    const profile = await board.profile();
    assert.ok(profile.some(({ name }) => name === 'head') && profile.every(({ us }) => us >= 0));
    const ids = [board.info.end_of_text, ...tokens.slice(0, 5).map(({ id }) => id)];
    assert.equal((await write(board, { ids, tokens: 4 })).end.count, 4);
});

test('Stop is seen between two tokens, the next request is answered, and digests agree', { timeout: 600000 }, async (t) => {
    const giving = new AbortController();
    const { board } = await open(t, (sent) => sent.startsWith(`D ${facts.context_length}`) && giving.abort());
    const stop = new AbortController();
    const end = await board.generate({ ...released, signal: stop.signal, onToken: () => stop.abort() });
    assert.equal(end.why, 'stopped');
    assert.ok(end.count < 250);
    await assert.rejects(board.digest(facts.context_length, 2, { signal: giving.signal }), { name: 'AbortError' });
    const one = await board.digest(8);
    assert.match(one, /^0x[0-9a-f]{16}$/);
    assert.equal(await board.digest(8, 2), one);
});

test('bytes of every kind come through', { timeout: 600000 }, async (t) => {
    const { board } = await open(t);
    const all = String.fromCharCode(...Array.from({ length: 128 }, (_, i) => i));
    const { end } = await write(board, { text: `${all} é🐸`, tokens: 2 });
    assert.equal(end.count, 2);
});

for (const [name, request, code] of [
    ['a prompt that is longer than the context', { text: 'word '.repeat(800), tokens: 1 }, 'board-context'],
    ['an id outside the vocabulary', { ids: [0, facts.vocab_size], tokens: 1 }, 'board-id'],
    ['a length out of range', { text: 'x', tokens: 1000001 }, 'board-range'],
]) {
    test(`${name} is refused by the firmware, and the next request is answered`, { timeout: 600000 }, async (t) => {
        const { board } = await open(t);
        await assert.rejects(board.generate(request), { code });
        assert.match(await board.digest(1), /^0x/);
    });
}

test('a conversation begins in the middle of another one, and behind garbage', { timeout: 600000 }, async (t) => {
    const first = await line();
    first.socket.write(Buffer.from('\nS 256 700 40 1 Once upon a time\nI\nD 8 '));
    await new Promise((resolve) => { setTimeout(resolve, 300); });
    await first.stream.close();
    const second = await line();
    second.socket.write(Uint8Array.from({ length: 3000 }, (_, i) => (i * 7919) & 0xff));
    const board = await Board.open(second.stream);
    t.after(() => board.close());
    assert.equal(board.info.sha256, facts.model_sha256);
    assert.equal((await write(board, { ...released, tokens: 10 })).end.count, 10);
});
