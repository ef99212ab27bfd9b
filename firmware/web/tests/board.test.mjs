import assert from 'node:assert/strict';
import test from 'node:test';

import { Board } from '../page/board.js';
import { scripted } from './support/scripted.mjs';

const INFO = `${JSON.stringify({
    format: 'chiplm-info-1', firmware: 'test', chip: 'none', error: null,
    model: { model_sha256: 'ab', vocab_size: 270, context_length: 32, end_of_text: 0 }, memories: [],
})}\n`;

/** A board that answers I, Q 0 and Q 1 by itself, and all else as told. */
async function open(answer = () => {}, options = {}, script = {}) {
    const wire = scripted((line, say) => {
        if (line === 'I') {
            say(script.info ?? INFO);
        } else if (line === 'Q 0' || line === 'Q 1') {
            say(`${line}\n`);
        } else {
            answer(line, say);
        }
    }, script);
    return { wire, board: await Board.open(wire.stream, { patience: 2000, greeting: 1500, ...options }) };
}

const request = { text: 'x', tokens: 4, temperature: 0.7, topK: 40, seed: '18446744073709551615' };
const text = (tokens) => String.fromCharCode(...tokens.flatMap(({ bytes }) => [...bytes]));

test('a text is asked for and arrives, every byte of it', async () => {
    const tokens = [];
    let prompt = 0;
    const { wire, board } = await open((line, say) => {
        if (line.startsWith('S')) {
            say('P 1.5\r\nT 1 0  a \r\nT 2 5 \\n\\\\\\xC3\r\nT 3 7 \\xa9\r\nT 4 5 \r\nE 4 5.67 end\r\n');
        }
    });
    const end = await board.generate({
        ...request, text: ' tab\t, line\n, é \\ \u007f ', onPrompt: (ms) => { prompt = ms; }, onToken: (token) => tokens.push(token),
    });
    assert.deepEqual(end, { count: 4, ms: 5.67, why: 'end', lost: 0 });
    assert.equal(prompt, 1.5);
    assert.equal(wire.lines.at(-1), 'S 4 700 40 18446744073709551615  tab\\x09, line\\n, \u00c3\u00a9 \\\\ \\x7f ');
    assert.equal(text(tokens), ' a \n\\\u00c3\u00a9');
    assert.deepEqual(tokens.map(({ id, us }) => [id, us]), [[1, 0], [2, 5], [3, 7], [4, 5]]);
});

test('ids are sent as they are, with their bytes asked for', async () => {
    const { wire, board } = await open((line, say) => {
        if (line.startsWith('G')) {
            say('P 1\nE 0 0.00 end\n');
        }
    });
    await board.generate({ ids: Int32Array.of(0, 7, 433), tokens: 2, seed: 5n, profile: true });
    assert.deepEqual(wire.lines.slice(-2), ['Q 1', 'G 2 0 0 5 1 3 0 7 433']);
});

test('the start of a conversation is found behind what runs, what is cut, and noise', async () => {
    const noise = 'ESP-ROM:esp32s3-20210327\nrst:0x1 (POWERON),boot:0x8\nI (24) boot: ESP-IDF\nE (12) psram: not found\nD (9) x: y\n'
        + 'V (9) x: y\nRebooting...\n\u0000\u00ff\u00fe\n' + 'z'.repeat(200000) + '\n\n';
    const remarks = [];
    const { board } = await open((line, say) => {
        if (line === 'X') {
            say('9\nT 1 2\nT 1 3\nE 2 3.00 stopped\n! unknown what\n{"half":\n' + noise);
        } else if (line === 'D 4 0') {
            say(noise + 'D 4 0 0x0123456789abcdef\n');
        }
    }, { onRemark: (line) => remarks.push(line) });
    assert.equal(board.info.sha256, 'ab');
    assert.equal(board.info.golden, true);
    assert.equal(await board.digest(4), '0x0123456789abcdef');
    assert.ok(remarks.includes('E (12) psram: not found'));
    assert.ok(!remarks.some((line) => line.includes('zzz')), 'a line that is too long is noise');
});

test('what was begun by others is answered before the first request', async () => {
    let asked = 0;
    const { board } = await open((line, say) => {
        if (line === 'X' && asked++ === 0) {
            say('V 1\nT 1 2 a\n'); // to the greeting of another program, in the middle of its text
            setTimeout(() => say('T 3 4 b\nE 2 1.00 stopped\n'), 10);
        }
    });
    assert.equal(board.info.vocab_size, 270);
});

test('Stop ends a text between two tokens, and the next request is answered', async () => {
    let runs = false;
    const { wire, board } = await open((line, say) => {
        if (line.startsWith('S')) {
            runs = true;
            say('P 1\nT 5 9 a\n');
        } else if (line === 'X' && runs) {
            runs = false;
            say('T 6 9 b\nE 2 9.00 stopped\n');
        } else if (line.startsWith('D')) {
            say('D 1 0 0x0000000000000001\n');
        }
    });
    const stop = new AbortController();
    const end = await board.generate({ ...request, signal: stop.signal, onToken: () => stop.abort() });
    assert.equal(end.why, 'stopped');
    assert.equal(wire.lines.filter((line) => line === 'X').length, 2, 'one of the greeting, one of the stop');
    assert.equal(await board.digest(1), '0x0000000000000001');
    const none = await board.generate({ ...request, signal: stop.signal });
    assert.deepEqual(none, { count: 0, ms: 0, why: 'stopped', lost: 0 }, 'stopped before it began');
});

test('requests wait for each other', async () => {
    const { wire, board } = await open((line, say) => {
        if (line.startsWith('S')) {
            setTimeout(() => say('P 1\nE 0 0.00 end\n'), 30);
        } else if (line.startsWith('D')) {
            say('D 1 0 0x0000000000000001\n');
        }
    });
    const both = [board.generate(request), board.digest(1)];
    await Promise.all(both);
    assert.deepEqual(wire.lines.slice(-2).map((line) => line[0]), ['S', 'D']);
});

test('a digest that is stopped is an AbortError', async () => {
    const { board } = await open((line, say) => {
        if (line === 'X') {
            say('! stopped by X\n');
        }
    });
    const stop = new AbortController();
    const digest = board.digest(64, 0, { signal: stop.signal });
    setTimeout(() => stop.abort(), 20);
    await assert.rejects(digest, { name: 'AbortError' });
});

test('lines that were cut are told, not shown', async () => {
    const { board } = await open((line, say) => {
        if (line.startsWith('S')) {
            say('P 1\nT 5 9 a\nT 6 \u0000\u00ffx\nT 7 9 \u00ff\nT 8 9 b\nE 4 9.00 length\n');
        }
    });
    const tokens = [];
    const end = await board.generate({ ...request, onToken: (token) => tokens.push(token) });
    assert.deepEqual(end, { count: 4, ms: 9, why: 'length', lost: 2 });
    assert.equal(text(tokens), 'ab');
});

for (const [name, answer, code] of [
    ['a refusal', '! context the prompt has 40 tokens, the context of this model 32: shorten the prompt\n', 'board-context'],
    ['a refusal without a message', '! context\n', 'answer'],
    ['a time that is none', 'P soon\n', 'answer'],
    ['an end that is none', 'P 1\nE 1 9.00 because\n', 'answer'],
    ['more tokens than the end counts', 'P 1\nT 5 9 a\nT 6 9 b\nE 1 9.00 length\n', 'answer'],
    ['more tokens than were asked for', `P 1\n${'T 5 9 a\n'.repeat(5)}E 5 9.00 length\n`, 'answer'],
    ['two times of one prompt', 'P 1\nP 1\nE 0 0.00 end\n', 'answer'],
    ['an answer of another request', 'D 4 0 0x0123456789abcdef\n', 'answer'],
    ['a restart', 'P 1\nT 5 9 a\nESP-ROM:esp32s3\n# ready\n', 'restarted'],
    ['a start that fails', 'P 1\n# not ready: psram no PSRAM answers\n', 'restarted'],
]) {
    test(`${name} is a failure of its kind, and the next request is answered`, async () => {
        const { board } = await open((line, say) => {
            if (line.startsWith('S')) {
                say(answer);
            } else if (line.startsWith('D')) {
                say('D 1 0 0x0000000000000001\n');
            }
        });
        await assert.rejects(board.generate(request), (error) => error.code === code && error.todo !== '');
        assert.equal(await board.digest(1), '0x0000000000000001');
    });
}

for (const [name, answer] of [['another n', 'D 5 0 0x0123456789abcdef\n'], ['too few digits', 'D 4 0 0x123\n'], ['a text', 'E 1 1.00 end\n']]) {
    test(`a digest with ${name} is refused`, async () => {
        const { board } = await open((line, say) => line.startsWith('D') && say(answer));
        await assert.rejects(board.digest(4), { code: 'answer' });
    });
}

test('a cable that is pulled ends what runs, and what comes after', async () => {
    const { wire, board } = await open((line, say) => line.startsWith('S') && say('P 1\nT 5 9 a\n'));
    await assert.rejects(board.generate({ ...request, onToken: () => wire.pull() }), { code: 'gone' });
    await assert.rejects(board.digest(1), { code: 'gone' });
});

test('a board that falls silent is told after its time', async () => {
    const { board } = await open(() => {}, { patience: 50 });
    await assert.rejects(board.generate(request), { code: 'silent' });
});

/** Says something that is no part of an answer, again and again, until the test is over. */
function chatter(t, say, line) {
    const timer = setInterval(() => say(line), 5);
    t.after(() => clearInterval(timer));
}

for (const [name, line] of [['remarks', 'E (1234) psram: something\n'], ['late greetings', 'V 1\n'], ['tokens that were cut', 'T 5\n']]) {
    test(`a board that never answers is told after its time, whatever else it says: ${name}`, { timeout: 10000 }, async (t) => {
        const { board } = await open((asked, say) => asked.startsWith('S') && chatter(t, say, line), { patience: 100, stopping: 100 });
        await assert.rejects(board.generate(request), (error) => error.code === 'silent' && /has not answered/.test(error.message));
    });

    test(`a board that does not stop is told after its time, whatever else it says: ${name}`, { timeout: 10000 }, async (t) => {
        const { board } = await open((asked, say) => asked.startsWith('S') && chatter(t, say, line), { patience: 5000, stopping: 100 });
        await assert.rejects(board.generate({ ...request, signal: AbortSignal.timeout(50) }), (error) => error.code === 'silent' && /has not stopped/.test(error.message));
    });
}

test('tokens that go on and on after Stop are no answer to it', { timeout: 10000 }, async (t) => {
    const { board } = await open((asked, say) => asked.startsWith('S') && chatter(t, say, 'T 5 9 a\n'), { patience: 5000, stopping: 100 });
    await assert.rejects(board.generate({ ...request, tokens: 1000000, signal: AbortSignal.timeout(50) }), { code: 'silent' });
});

test('a board that greets and then only talks is told after its time, and can be left at once', { timeout: 10000 }, async (t) => {
    const talks = () => scripted((line, say) => line === 'I' && chatter(t, say, 'E (1234) psram: something\n'));
    await assert.rejects(Board.open(talks().stream, { patience: 100 }), { code: 'silent' });
    const before = performance.now();
    await assert.rejects(Board.open(talks().stream, { signal: AbortSignal.timeout(100) }), { name: 'TimeoutError' });
    assert.ok(performance.now() - before < 3000);
});

test('a board that answers somebody else all the time is busy, not noise', async () => {
    const wire = scripted((line, say) => say('T 1 2 a\nE 1 1.00 end\n'), { silent: true });
    await assert.rejects(Board.open(wire.stream, { greeting: 100 }), { code: 'occupied' });
});

test('nothing at the port, something else at it, and another version', async () => {
    await assert.rejects(open(() => {}, { greeting: 100 }, { silent: true }), { code: 'silent' });
    const other = scripted((line, say) => say('$GPGGA,123519\r\n'), { silent: true });
    await assert.rejects(Board.open(other.stream, { greeting: 100 }), { code: 'noise' });
    await assert.rejects(open(() => {}, {}, { version: 'V 2\n' }), { code: 'version' });
});

test('an attempt to greet can be given up', async () => {
    const stop = new AbortController();
    const wire = scripted(() => {}, { silent: true });
    const attempt = Board.open(wire.stream, { signal: stop.signal });
    setTimeout(() => stop.abort(), 20);
    await assert.rejects(attempt, { name: 'AbortError' });
});

for (const [code, word] of [['psram', 'N16R8'], ['model', 'firmware and model together'], ['golden', 'PSRAM'], ['model-empty', 'Flash a model']]) {
    test(`a board that is not ready says why and what to do: ${code}`, async () => {
        const info = `${JSON.stringify({ firmware: 'x', error: { code, message: 'it is so' } })}\n`;
        const { board } = await open((line, say) => line.startsWith('S') && say(`! ${code} it is so\n`), {}, { info });
        assert.equal(board.trouble.code, `board-${code}`);
        assert.ok(board.trouble.sentence.includes('it is so') && board.trouble.sentence.includes(word), board.trouble.sentence);
        assert.equal(board.info.golden, code === 'golden' ? false : null);
        await assert.rejects(board.generate(request), { code: `board-${code}` });
    });
}

const whole = JSON.parse(INFO);
for (const [name, change] of Object.entries({
    'no model': { model: undefined }, 'a model that is null': { model: null }, 'an empty model': { model: {} }, 'a model that is a list': { model: [whole.model] },
    'a context that is a text': { model: { ...whole.model, context_length: '32' } }, 'a vocabulary of nothing': { model: { ...whole.model, vocab_size: 0 } },
    'a hash that is a number': { model: { ...whole.model, model_sha256: 7 } }, 'memories that are an object': { memories: {} },
    'a memory that is null': { memories: [null] }, 'a memory without sizes': { memories: [{ name: 'sram' }] },
    'an empty error': { error: {} }, 'an error that is a text': { error: 'psram' }, 'an error without words': { error: { code: 'psram' } },
    'an error whose code is none': { error: { code: 'a b', message: 'x' } }, 'a chip that is an object': { chip: {} }, 'cores that are a text': { cores: 'two' },
})) {
    test(`what a board says of itself has its shape, or is no answer: ${name}`, async () => {
        await assert.rejects(open(() => {}, {}, { info: `${JSON.stringify({ ...whole, ...change })}\n` }), { code: 'answer' });
    });
}

for (const profile of ['{}', '{"profile":null}', '{"profile":{}}', '{"profile":[null]}', '{"profile":[{"operation":"head"}]}', '{"profile":', 'E 1 1.00 end']) {
    test(`a profile has its shape, or is no answer: ${profile}`, async () => {
        const { board } = await open((line, say) => line === 'Q' && say(`${profile}\n`));
        await assert.rejects(board.profile(), { code: 'answer' });
    });
}

test('a profile is asked for, and is null when there is none', async () => {
    let known = false;
    const { board } = await open((line, say) => line === 'Q'
        && say(known ? '{"tokens":2,"profile":[{"operation":"head","us":3.5}]}\n' : '! profile no token was profiled yet\n'));
    assert.equal(await board.profile(), null);
    known = true;
    assert.deepEqual(await board.profile(), [{ name: 'head', us: 3.5 }]);
});

test('a request that no line can hold is not sent', async () => {
    const { wire, board } = await open();
    const before = wire.lines.length;
    await assert.rejects(board.generate({ ...request, text: 'x'.repeat(5000) }), { code: 'too-long' });
    assert.deepEqual(wire.lines.slice(before), ['Q 0']);
});

test('a closed board refuses', async () => {
    const { board } = await open();
    await board.close();
    await assert.rejects(board.digest(1), { code: 'closed' });
});
