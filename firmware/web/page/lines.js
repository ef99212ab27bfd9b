import { Trouble } from './trouble.js';

/**
 * A line of bytes both ways: a serial port, or a WebSocket.
 * @typedef {object} ByteStream
 * @property {string} name what to call it in a sentence
 * @property {() => Promise<Uint8Array | null>} read the next bytes; null when it is over; a Trouble when it broke
 * @property {(bytes: Uint8Array) => Promise<void>} write
 * @property {() => Promise<void>} close
 */

const MOST_LINE = 1 << 16; // bytes of an answer: a longer line is noise
const MOST_LINES = 1 << 14; // that wait to be looked at

/** @returns {Trouble} for a connection that ended by itself */
export function goneTrouble(cause) {
    return new Trouble('gone', 'The board is gone: the cable was pulled, or the port was closed.',
        'Plug it in again, then connect.', cause);
}

/**
 * Splits what arrives into lines. It reads all the time, so that a board need not drop anything; while nobody waits for
 * an answer, lines are dropped here.
 */
export class Lines {
    #stream;
    #lines = [];
    #listening = false;
    #over = null; // the Trouble that ended the stream
    #waiting = null; // wakes next()
    #ended;
    #held = [];
    #heldBytes = 0;
    #skip = false; // the rest of a line that is too long

    /** @param {ByteStream} stream */
    constructor(stream) {
        this.#stream = stream;
        /** How many bytes arrived so far. */
        this.bytes = 0;
        /** Resolves when the stream is over, with the Trouble that says how. @type {Promise<Trouble>} */
        this.over = new Promise((resolve) => { this.#ended = resolve; });
        this.#run();
    }

    async #run() {
        try {
            for (let bytes = await this.#stream.read(); bytes !== null; bytes = await this.#stream.read()) {
                this.bytes += bytes.length;
                this.#split(bytes);
            }
            this.#over = goneTrouble();
        } catch (error) {
            this.#over = error instanceof Trouble ? error : goneTrouble(error);
        }
        this.#ended(this.#over);
        this.#waiting?.();
    }

    #split(bytes) {
        let from = 0;
        for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, from)) {
            this.#hold(bytes.subarray(from, at));
            if (!this.#skip) {
                this.#add(text(this.#held));
            }
            this.#forget(false);
            from = at + 1;
        }
        this.#hold(bytes.subarray(from));
    }

    #hold(bytes) {
        this.#heldBytes += bytes.length;
        if (this.#skip || this.#heldBytes > MOST_LINE) {
            this.#forget(true);
        } else if (bytes.length > 0) {
            this.#held.push(bytes.slice());
        }
    }

    #forget(skip) {
        this.#held = [];
        this.#heldBytes = 0;
        this.#skip = skip;
    }

    #add(line) {
        if (!this.#listening) {
            return;
        }
        this.#lines.push(line.endsWith('\r') ? line.slice(0, -1) : line);
        if (this.#lines.length > MOST_LINES) {
            this.#lines.shift(); // an answer that nobody takes
        }
        this.#waiting?.();
    }

    /**
     * Starts or ends waiting for an answer. What arrived before is dropped.
     * @param {boolean} on
     */
    listen(on) {
        this.#listening = on;
        this.#lines = [];
    }

    /**
     * The next line, of one character a byte.
     * @param {number} patience milliseconds
     * @param {AbortSignal} [signal] ends the waiting, with null too
     * @returns {Promise<string | null>} null when patience ended
     * @throws {Trouble} when the stream is over
     */
    async next(patience, signal) {
        const until = performance.now() + patience;
        while (this.#lines.length === 0) {
            if (this.#over !== null) {
                throw this.#over;
            }
            const left = until - performance.now();
            if (left <= 0 || signal?.aborted) {
                return null;
            }
            await this.#arrival(left, signal);
        }
        return this.#lines.shift();
    }

    #arrival(most, signal) {
        return new Promise((resolve) => {
            const done = () => {
                clearTimeout(timer);
                signal?.removeEventListener('abort', done);
                this.#waiting = null;
                resolve();
            };
            const timer = setTimeout(done, most);
            signal?.addEventListener('abort', done);
            this.#waiting = done;
        });
    }
}

function text(parts) {
    let line = '';
    for (const part of parts) {
        for (let i = 0; i < part.length; i += 4096) {
            line += String.fromCharCode(...part.subarray(i, i + 4096));
        }
    }
    return line;
}
