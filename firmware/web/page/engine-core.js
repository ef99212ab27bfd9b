/*
 * The engine without its worker: the module of wasm/engine.c, and around it what the firmware does for the requests S, G, D
 * and Q. Nothing here knows where it runs.
 */
import { checkDigest, checked, textOf } from './engine-request.js';
import { Trouble } from './trouble.js';

const NO_MEMORY = -1000; // of wasm/engine.c
const PLAIN = 2; // the mode of a digest

/**
 * How work that takes long looks at the world between two pieces.
 * @typedef {object} Ear
 * @property {() => Promise<void>} pause lets messages come in
 * @property {() => boolean} stopped whether one of them said stop
 */

/** @param {number} bytes */
function noMemory(bytes) {
    return new Trouble('memory', `The browser has no memory left for this model: it needs ${Math.ceil(bytes / 1e6)} MB and more.`,
        'Close other pages, or choose a smaller model.');
}

/** A model in an instance of the module. */
export class Core {
    #wasm;
    #broken = null;

    /** What the model is: "model" of the board's answer to I, and more. */
    info;

    /** @param {WebAssembly.Exports} exports */
    constructor(exports) {
        this.#wasm = exports;
    }

    /**
     * Makes an instance, and has it check and prove an image.
     * @param {object} parts
     * @param {BufferSource} parts.wasm the module
     * @param {Uint8Array} parts.image
     * @param {(stage: 'check' | 'golden') => void} [parts.onStage] is told before each of the two
     * @returns {Promise<Core>}
     */
    static async load({ wasm, image, onStage }) {
        let made;
        try {
            made = await WebAssembly.instantiate(wasm, { page: { milliseconds: () => performance.now() } });
        } catch (error) {
            throw new Trouble('wasm', `This browser cannot run the engine: ${error.message}.`,
                'Use a newer browser: Chrome or Edge 91, Firefox 89, Safari 16.4, or later.');
        }
        const core = new Core(made.instance.exports);
        onStage?.('check');
        core.#open(image);
        onStage?.('golden');
        core.#prove();
        return core;
    }

    #open(image) {
        const at = this.#call('engine_file', image.length);
        if (at === 0) {
            throw noMemory(image.length);
        }
        this.#bytes(at, image.length).set(image);
        const result = this.#call('engine_open', image.length);
        if (result === NO_MEMORY) {
            throw noMemory(image.length);
        }
        if (result < 0) {
            throw new Trouble('image', `The engine refuses this image: ${this.#sentence(result)}.`, '');
        }
    }

    #prove() {
        const result = this.#call('engine_prove');
        if (result < 0) {
            throw new Trouble('golden', `The engine in this browser does not compute this model’s bits: ${this.#sentence(result)}.`, '');
        }
        this.#call('engine_info');
        const info = JSON.parse(this.#text());
        this.info = { ...info, sha256: info.model_sha256, golden: true };
    }

    // -------------------------------------------------------------------------------------------------- calls and memory

    /** After a trap the instance is of no use: its memory may be half written. */
    #call(name, ...values) {
        if (this.#broken !== null) {
            throw this.#broken;
        }
        try {
            return this.#wasm[name](...values);
        } catch (error) {
            this.#broken = error;
            throw error;
        }
    }

    /** A result that is no status. */
    #checked(name, ...values) {
        const result = this.#call(name, ...values);
        if (result < 0) {
            throw new Trouble('engine', `The engine failed: ${this.#sentence(result)}.`, '');
        }
        return result;
    }

    /** A view of memory: it ends when memory grows. */
    #bytes(at, n) {
        return new Uint8Array(this.#wasm.memory.buffer, at >>> 0, n);
    }

    #text() {
        return new TextDecoder().decode(this.#bytes(this.#call('engine_text'), this.#call('engine_text_bytes')));
    }

    #sentence(result) {
        this.#call('engine_sentence', result);
        return this.#text();
    }

    // -------------------------------------------------------------------------------------------------------------- text

    /**
     * The ids of a text, end-of-text not among them.
     * @param {Uint8Array} text
     * @returns {Int32Array}
     */
    encode(text) {
        const bytes = textOf(text);
        const at = this.#call('engine_text_room', bytes.length);
        if (at === 0) {
            throw noMemory(this.#wasm.memory.buffer.byteLength);
        }
        this.#bytes(at, bytes.length).set(bytes);
        const n = this.#call('engine_encode', bytes.length);
        if (n < 0) {
            throw new Trouble('encode', `The text cannot be encoded: ${this.#sentence(n)}.`, '');
        }
        return new Int32Array(this.#wasm.memory.buffer, this.#call('engine_ids', bytes.length) >>> 0, n).slice();
    }

    /**
     * The bytes of a token: none for end-of-text, and for an id that the tokenizer has no entry for.
     * @param {number} id
     * @returns {Uint8Array}
     */
    token(id) {
        return this.#bytes(this.#call('engine_token', id), this.#call('engine_token_bytes', id)).slice();
    }

    // ---------------------------------------------------------------------------------------------------------- requests

    /**
     * Writes a text, as the firmware does. Resolves when it is through or was stopped.
     * @param {object} request as [Engine.generate] takes it
     * @param {Ear} ear
     * @param {{onPrompt: (ms: number) => void, onToken: (token: {id: number, us: number, bytes: Uint8Array}) => void}} on
     * @returns {Promise<{count: number, ms: number, why: string}>}
     */
    async generate(request, ear, on) {
        const { prompt, tokens, thousandths, topK, seed, profile } = checked(request, this.info, (text) => this.encode(text));
        new Int32Array(this.#wasm.memory.buffer, this.#call('engine_prompt') >>> 0, prompt.length).set(prompt);
        this.#call('engine_begin', prompt.length, thousandths, topK, seed, profile ? 1 : 0);
        const before = performance.now();
        while (!ear.stopped() && this.#checked('engine_read') > 0) {
            await ear.pause();
        }
        if (ear.stopped()) {
            return { count: 0, ms: 0, why: 'stopped' };
        }
        on.onPrompt(performance.now() - before);
        return this.#write(tokens, ear, on.onToken);
    }

    async #write(tokens, ear, onToken) {
        let count = 0;
        let sum = 0; // microseconds of all but the first
        const end = (why) => ({ count, ms: count > 1 ? sum / (count - 1) / 1000 : 0, why });
        for (let mark = performance.now(); count < tokens;) {
            const id = this.#checked('engine_draw');
            if (id === this.info.end_of_text) {
                return end('end');
            }
            const now = performance.now();
            const us = Math.round((now - mark) * 1000);
            onToken({ id, us, bytes: this.token(id) });
            sum += count === 0 ? 0 : us;
            count++;
            mark = now;
            if (count === tokens) {
                break;
            }
            if (this.#call('engine_position') === this.info.context_length) {
                return end('context');
            }
            await ear.pause();
            if (ear.stopped()) {
                return end('stopped');
            }
            this.#checked('engine_feed', id);
        }
        return end('length');
    }

    /**
     * The digest of n tokens, the likeliest each.
     * @param {number} n
     * @param {number} mode 0 and 1: the fastest path; 2: plain C
     * @param {Ear} ear
     * @returns {Promise<string | null>} 0x and 16 digits; null: stopped
     */
    async digest(n, mode, ear) {
        checkDigest(n, mode, this.info.context_length);
        this.#checked('engine_digest_begin', mode === PLAIN ? 1 : 0);
        let stopped = ear.stopped();
        try {
            for (let i = 0; i < n && !stopped; i++) {
                this.#checked('engine_digest_add');
                await ear.pause();
                stopped = ear.stopped();
            }
        } finally {
            this.#call('engine_digest_end');
        }
        if (stopped) {
            return null;
        }
        return `0x${BigInt.asUintN(64, this.#call('engine_digest')).toString(16).padStart(16, '0')}`;
    }

    /**
     * Mean microseconds a token by operation, of the last text that was written with its profile.
     * @returns {{name: string, us: number}[] | null} null when no token was measured
     */
    profile() {
        if (this.#call('engine_profile') === 0) {
            return null;
        }
        return JSON.parse(this.#text()).map(({ operation, us }) => ({ name: operation, us }));
    }
}
