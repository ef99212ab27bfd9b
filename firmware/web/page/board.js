/*
 * A conversation with a board: the line protocol of firmware/PROTOCOL.md, version 1, over any stream of bytes. Its shape is
 * that of Engine (engine.js), so that the views need not know which of the two writes.
 */
import { refused } from './advice.js';
import { digestOf, endOf, infoOf, isOurs, isStart, kindOf, profileOf, promptOf, refusalOf, tokenOf } from './answers.js';
import { bytesOf, escape } from './escapes.js';
import { Lines } from './lines.js';
import { Trouble } from './trouble.js';

const VERSION = 1;
const MOST_LINE = 4096; // bytes of a request without its end
const BEAT = 1000; // ms between two attempts to greet
const QUIET = 25; // ms without a line, after which a board has answered everything that was asked before
const TAKING = 5000; // ms that a port may take for a request: it holds a whole one

/** What take of #request gives for a line that counts for nothing: it was cut on its way. */
const CUT = Symbol('cut');

/** @param {number} ms */
function seconds(ms) {
    return `${Math.round(ms / 1000)} seconds`;
}

/** @param {string} line @param {string} want */
function answerTrouble(line, want) {
    const shown = line.length > 80 ? `${line.slice(0, 80)}…` : line;
    return new Trouble('answer', `The board answered “${shown}”, where ${want} belongs.`,
        'Connect again; if it happens once more, flash the firmware that belongs to this page.');
}

/** A board at the other end of a stream. Requests wait for each other. */
export class Board {
    #stream;
    #lines;
    #patience;
    #greeting;
    #stopping;
    #onRemark;
    #synced = false; // the next line that arrives belongs to the next request
    #closed = false;
    #profiling = null; // what the board was told last; null: nobody knows
    #turn = Promise.resolve(); // until the request before is through

    /**
     * Nothing is sent yet. The board owns the stream, and closes it.
     * @param {import('./lines.js').ByteStream} stream
     * @param {object} [options]
     * @param {number} [options.patience] ms between two lines of an answer; what else the board says meanwhile is none
     * @param {number} [options.greeting] ms to wait for the first answer in all: a board that starts checks its model first
     * @param {number} [options.stopping] ms within which a board stops: it looks between two tokens, and between blocks of a prompt
     * @param {(line: string) => void} [options.onRemark] is told of every line that is no answer, while one is awaited
     */
    constructor(stream, { patience = 30000, greeting = 15000, stopping = 10000, onRemark } = {}) {
        this.#stream = stream;
        this.#lines = new Lines(stream);
        this.#patience = patience;
        this.#greeting = greeting;
        this.#stopping = stopping;
        this.#onRemark = onRemark;
        /** What the board and its model are; null before [open]. */
        this.info = null;
        /** Why the board runs without its model; null when it is ready. @type {Trouble | null} */
        this.trouble = null;
    }

    /**
     * Greets a board, and asks what it is.
     * @param {import('./lines.js').ByteStream} stream
     * @param {object} [options] as those of the constructor, and signal, which ends the attempt at once, wherever it is
     * @returns {Promise<Board>}
     */
    static async open(stream, { signal, ...options } = {}) {
        const board = new Board(stream, options);
        const giveUp = () => board.close(); // which fails what is awaited
        signal?.addEventListener('abort', giveUp);
        try {
            signal?.throwIfAborted();
            await board.#exclusive(() => board.#hello());
            await board.refresh();
            signal?.throwIfAborted();
            return board;
        } catch (error) {
            await board.close();
            signal?.throwIfAborted();
            throw error;
        } finally {
            signal?.removeEventListener('abort', giveUp);
        }
    }

    /** Resolves when the connection ended by itself, with the Trouble that says how. @type {Promise<Trouble>} */
    get gone() {
        return this.#lines.over.then((trouble) => (this.#closed ? new Promise(() => {}) : trouble));
    }

    /** What the stream is called. */
    get name() {
        return this.#stream.name;
    }

    /** Asks again what the board and its model are. */
    async refresh() {
        const board = await this.#object('I', infoOf);
        const { error, model } = board;
        this.trouble = error === null ? null : refused(error);
        this.info = {
            ...model,
            sha256: model?.model_sha256,
            golden: error === null ? true : error.code === 'golden' ? false : null,
            board,
        };
        return this.info;
    }

    /**
     * Lets the board write. Resolves when it is through, also when signal stopped it.
     * @param {object} request
     * @param {string} [request.text] the start, behind end-of-text
     * @param {ArrayLike<number>} [request.ids] instead: the ids to start with, end-of-text among them
     * @param {number} request.tokens at most
     * @param {number} [request.temperature] in steps of a thousandth; 0: always the likeliest token
     * @param {number} [request.topK] among so many; 0: among all
     * @param {bigint | string | number} [request.seed]
     * @param {boolean} [request.profile] note where the time goes
     * @param {AbortSignal} [request.signal]
     * @param {(ms: number) => void} [request.onPrompt]
     * @param {(token: import('./answers.js').Token) => void} [request.onToken]
     * @returns {Promise<{count: number, ms: number, why: string, lost: number}>} lost: tokens whose lines did not arrive whole
     */
    async generate({ text, ids, tokens, temperature = 0, topK = 0, seed = 0, profile = false, signal, onPrompt, onToken }) {
        const fields = `${tokens} ${Math.round(temperature * 1000)} ${topK} ${BigInt(seed)}`;
        const line = ids === undefined
            ? `S ${fields} ${escape(new TextEncoder().encode(text))}`
            : `G ${fields} 1 ${ids.length} ${Array.from(ids).join(' ')}`;
        let read = false; // the prompt was
        let taken = 0;
        return this.#exclusive(async () => {
            if (this.#profiling !== profile) {
                await this.#profile(profile);
            }
            if (signal?.aborted) {
                return { count: 0, ms: 0, why: 'stopped', lost: 0 };
            }
            return this.#request(line, { signal }, (answer) => {
                switch (kindOf(answer)) {
                case 'P': {
                    const ms = promptOf(answer);
                    if (ms === null || read || taken > 0) {
                        throw answerTrouble(answer, ms === null ? 'the time of the prompt' : 'a token, or the end');
                    }
                    read = true;
                    onPrompt?.(ms);
                    return undefined;
                }
                case 'T': {
                    const token = tokenOf(answer); // null: a line that was cut; the end tells how many there were
                    if (token === null) {
                        return CUT;
                    }
                    if (taken === tokens) {
                        throw answerTrouble(answer, `the end of ${tokens} tokens`);
                    }
                    taken++;
                    onToken?.(token);
                    return undefined;
                }
                case 'E': {
                    const end = endOf(answer);
                    if (end === null || taken > end.count) {
                        throw answerTrouble(answer, `the end of ${taken} tokens`);
                    }
                    return { ...end, lost: end.count - taken };
                }
                default:
                    throw answerTrouble(answer, 'a part of a text');
                }
            });
        });
    }

    /**
     * The digest of n tokens, the likeliest each.
     * @param {number} n
     * @param {number} [mode] 0: both cores; 1: one core; 2: one core, plain C
     * @param {{signal?: AbortSignal}} [options] signal ends it with an AbortError
     * @returns {Promise<string>} 0x and 16 digits
     */
    async digest(n, mode = 0, { signal } = {}) {
        return this.#exclusive(async () => {
            signal?.throwIfAborted();
            try {
                // It is silent until the end, and plain C is slow.
                return await this.#request(`D ${n} ${mode}`, { signal, patience: this.#patience + n * 1000 }, (answer) => {
                    const digest = digestOf(answer, n, mode);
                    if (digest === null) {
                        throw answerTrouble(answer, `the digest of ${n} tokens`);
                    }
                    return digest;
                });
            } catch (error) {
                if (error instanceof Trouble && error.code === 'board-stopped') {
                    signal?.throwIfAborted();
                }
                throw error;
            }
        });
    }

    /**
     * Mean microseconds a token by operation, of the last text that was written with its profile; null without one.
     * @returns {Promise<{name: string, us: number}[] | null>}
     */
    async profile() {
        try {
            return await this.#object('Q', profileOf);
        } catch (error) {
            if (error instanceof Trouble && error.code === 'board-profile') {
                return null;
            }
            throw error;
        }
    }

    /** Ends the conversation. What still runs fails. */
    async close() {
        if (!this.#closed) {
            this.#closed = true;
            await this.#stream.close();
        }
    }

    // ------------------------------------------------------------------------------------------------ the conversation

    async #exclusive(work) {
        const before = this.#turn;
        let through;
        this.#turn = new Promise((resolve) => { through = resolve; });
        await before;
        try {
            return await work();
        } finally {
            through();
        }
    }

    /** A port that takes nothing fails it: after that the connection is of no use. */
    async #send(line) {
        let timer;
        const stuck = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new Trouble('stuck', `${this.name} has taken no request for ${TAKING / 1000} seconds.`,
                'Press RESET on the board, or pull its cable and plug it in again; then connect.')), TAKING);
        });
        try {
            await Promise.race([this.#stream.write(bytesOf(`${line}\n`)), stuck]);
        } catch (error) {
            await this.close();
            throw error;
        } finally {
            clearTimeout(timer);
        }
    }

    #remark(line) {
        if (line === '') {
            return;
        }
        this.#onRemark?.(line);
    }

    /** Stops what the board may still be doing, and finds the start of a conversation. */
    async #hello() {
        this.#synced = false;
        this.#profiling = null;
        const before = this.#lines.bytes;
        const heard = { ours: false };
        const end = performance.now() + this.#greeting;
        this.#lines.listen(true);
        try {
            while (performance.now() < end) {
                await this.#send('\nX\nV'); // the first line end ends a line that somebody else began
                if (await this.#greeted(Math.min(BEAT, end - performance.now()), heard)) {
                    await this.#settle(end);
                    this.#synced = true;
                    return;
                }
            }
        } finally {
            this.#lines.listen(false);
        }
        throw this.#silence(this.#lines.bytes > before, heard.ours);
    }

    #silence(talks, ours) {
        const time = seconds(this.#greeting);
        if (ours) {
            return new Trouble('occupied', `The board at ${this.name} is busy: for ${time} it has answered what another program `
                + 'asked, or asks.',
            'Wait until it is through, or restart it (RESET on a board); end the other program; then connect.');
        }
        if (talks) {
            return new Trouble('noise', `Something talks at ${this.name}, but for ${time} nothing of it was `
                + 'chiplm’s protocol.',
            'Choose the port of the board; if this is it, flash the firmware. A board that shows “waiting for download” '
                + 'is in its boot loader: press RESET.');
        }
        return new Trouble('silent', `Nothing answers at ${this.name} within ${time}.`,
            'Is it the port named USB on the board, and is chiplm’s firmware on it? Flash it; or press RESET on a board '
                + 'that hangs or waits in its boot loader.');
    }

    async #greeted(patience, heard) {
        const end = performance.now() + patience;
        for (;;) {
            const line = await this.#lines.next(end - performance.now());
            if (line === null) {
                return false;
            }
            if (line === `V ${VERSION}`) {
                return true;
            }
            const other = /^V (\d{1,9})$/.exec(line);
            if (other !== null) {
                throw new Trouble('version', `The board speaks version ${other[1]} of the protocol, this page ${VERSION}.`,
                    'Flash the firmware that belongs to this page.');
            }
            if (kindOf(line) === '') {
                this.#remark(line);
            }
            heard.ours ||= isOurs(line);
            if (performance.now() > end) { // it talks without a pause
                return false;
            }
        }
    }

    /** Waits until nothing more arrives: answers to what others asked before, and to greetings that were sent again. */
    async #settle(end) {
        while (performance.now() < end) {
            const line = await this.#lines.next(QUIET);
            if (line === null) {
                return;
            }
            if (kindOf(line) === '') {
                this.#remark(line);
            }
        }
    }

    /**
     * Sends a request, and hands each line of its answer to take until that gives something other than CUT. Remarks are
     * passed over; they say nothing of when the answer comes, so they give it no more time. A signal that aborts stops the
     * board once; its answer goes on to its end.
     */
    async #request(line, { signal, patience = this.#patience }, take) {
        if (this.#closed) {
            throw new Trouble('closed', 'The connection was closed.', 'Connect again.');
        }
        if (line.length > MOST_LINE) {
            throw new Trouble('too-long', `The request has ${line.length} bytes, of which a board takes ${MOST_LINE}.`,
                'Use a shorter start.');
        }
        if (!this.#synced) {
            await this.#hello();
        }
        this.#synced = false; // until the answer is complete
        this.#lines.listen(true);
        try {
            await this.#send(line);
            const result = await this.#answer(line, signal, patience, take);
            this.#synced = true;
            return result;
        } catch (error) {
            this.#synced = error instanceof Trouble && error.code.startsWith('board-');
            throw error;
        } finally {
            this.#lines.listen(false);
        }
    }

    async #answer(line, signal, patience, take) {
        let stopping = false;
        let end = performance.now() + patience;
        for (;;) {
            if (signal?.aborted && !stopping) {
                stopping = true;
                await this.#send('X');
                end = performance.now() + this.#stopping;
            }
            const answer = await this.#lines.next(end - performance.now(), stopping ? undefined : signal);
            if (answer === null && signal?.aborted && !stopping) {
                continue;
            }
            const result = answer === null ? CUT : this.#taken(answer, take);
            if (result !== undefined && result !== CUT) {
                return result;
            }
            if (result === undefined && !stopping) {
                end = performance.now() + patience;
            } else if (answer === null || performance.now() > end) {
                const asked = `“${line.slice(0, 40)}”`;
                throw new Trouble('silent', stopping ? `The board has not stopped ${asked} within ${seconds(this.#stopping)}.`
                    : `The board has not answered ${asked} for ${seconds(patience)}.`, 'Press RESET on the board, then connect again.');
            }
        }
    }

    /** What take makes of a line; CUT for one that is no part of an answer. */
    #taken(answer, take) {
        switch (kindOf(answer)) {
        case '':
            this.#remark(answer);
            if (isStart(answer)) {
                throw new Trouble('restarted', 'The board restarted in the middle of an answer.',
                    'Try again. If it happens once more, use another cable or USB port, since power fails first; '
                    + 'what the board printed is in its log.');
            }
            return CUT;
        case 'V':
            return CUT; // to a greeting, late
        case '!': {
            const refusal = refusalOf(answer);
            throw refusal === null ? answerTrouble(answer, 'an error’s code and message') : refused(refusal);
        }
        default:
            return take(answer);
        }
    }

    /** Sends a request that one line answers, and reads that. */
    async #object(request, read) {
        return this.#exclusive(() => this.#request(request, {}, (answer) => {
            const object = read(answer);
            if (object === null) {
                throw answerTrouble(answer, `the answer to ${request}`);
            }
            return object;
        }));
    }

    async #profile(on) {
        const want = on ? 'Q 1' : 'Q 0';
        await this.#request(want, {}, (answer) => {
            if (answer !== want) {
                throw answerTrouble(answer, `“${want}”`);
            }
            return true;
        });
        this.#profiling = on;
    }
}
