/*
 * The engine in this browser: the C engine of the other programs, compiled to WebAssembly, in a worker of its own. Its shape
 * is that of Board (board.js), so that the views need not know which of the two writes.
 *
 *     const engine = await Engine.start({ image: 'models/combo/model.clm' });
 *     await engine.generate({ text: 'Once upon a time', tokens: 200, temperature: 0.7, topK: 40, seed: 1n,
 *         onToken: ({ bytes }) => show(bytes) });
 *
 * All failures are Troubles: what happened, and what to do about it.
 */
import { received } from './engine-posted.js';
import { NO_SERVER } from './models.js';
import { Trouble } from './trouble.js';

/** A model that runs in this browser. Requests wait for each other; any number of engines run side by side. */
export class Engine {
    #worker;
    #last = 0; // number of a request
    #open = new Map(); // requests by number: {resolve, reject, on}
    #end = null; // why there are no more requests
    #tokens;

    /** @param {Worker} worker */
    constructor(worker) {
        this.#worker = worker;
        let heard = false;
        worker.onmessage = ({ data }) => {
            heard = true;
            this.#answer(data);
        };
        worker.onerror = (event) => {
            event.preventDefault?.();
            // A file of it that is missing has no message; one that it stumbles over has.
            this.#fail(!heard && !event.message ? new Trouble('fetch', 'The page could not read the files of its engine where it came from.',
                NO_SERVER) : new Trouble('crash', `The engine’s worker ended: ${event.message || 'the browser does not say why'}.`,
                'Load the page anew; close other pages if the browser is short of memory.'));
        };
        worker.onmessageerror = () => this.#fail(new Trouble('crash', 'A message of the engine’s worker cannot be read.',
            'Load the page anew.'));
        /** What the model is; null before it started. */
        this.info = null;
    }

    /**
     * Starts a model: checks the image whole, and proves by its golden run that this browser computes the right bits. An image
     * that is refused rejects with the engine's own sentence.
     * @param {object} options
     * @param {ArrayBuffer | Uint8Array | string | URL} options.image its bytes, which are copied, or where to read them
     * @param {ArrayBuffer | Uint8Array | string | URL} [options.wasm] the module; that beside this file
     * @param {(progress: {stage: 'module' | 'image' | 'check' | 'golden', done: number | null, total: number | null}) => void}
     *   [options.onProgress] is told of each stage, and of the bytes that were read
     * @param {AbortSignal} [options.signal] ends the start with an AbortError
     * @returns {Promise<Engine>}
     */
    static async start({ image, wasm = new URL('./engine.wasm', import.meta.url), onProgress, signal }) {
        signal?.throwIfAborted();
        if (globalThis.Worker === undefined || globalThis.WebAssembly === undefined) {
            throw new Trouble('no-engine', `This browser has no ${globalThis.Worker === undefined ? 'workers' : 'WebAssembly'}, without which no `
                + 'model runs in it.', 'Take a current browser, or allow it in this one’s settings; or connect a board.');
        }
        const engine = new Engine(new Worker(new URL('./engine-worker.js', import.meta.url), { type: 'module' }));
        const give = () => engine.#fail(signal.reason);
        signal?.addEventListener('abort', give);
        try {
            const { info, tokens } = await engine.#ask('start', { image: sent(image), wasm: sent(wasm) }, {
                progress: ({ stage, done, total }) => onProgress?.({ stage, done, total }),
            });
            engine.info = info;
            engine.#tokens = tokens;
            return engine;
        } catch (error) {
            await engine.close();
            throw error;
        } finally {
            signal?.removeEventListener('abort', give);
        }
    }

    /**
     * Lets the model write. Resolves when it is through, also when signal stopped it.
     * @param {object} request
     * @param {string | Uint8Array} [request.text] the start, behind end-of-text
     * @param {number[] | Int32Array} [request.ids] instead: the ids to start with, end-of-text among them
     * @param {number} request.tokens at most
     * @param {number} [request.temperature] in steps of a thousandth; 0: always the likeliest token
     * @param {number} [request.topK] among so many; 0: among all
     * @param {bigint | string | number} [request.seed]
     * @param {boolean} [request.profile] note where the time goes
     * @param {AbortSignal} [request.signal]
     * @param {(ms: number) => void} [request.onPrompt] the prompt was read
     * @param {(token: {id: number, us: number, bytes: Uint8Array}) => void} [request.onToken] us: since the last one; for the
     *   first, since the prompt was read. bytes may end inside a character
     * @returns {Promise<{count: number, ms: number, why: 'end' | 'length' | 'context' | 'stopped'}>} ms: a token, the first left out
     */
    async generate({ signal, onPrompt, onToken, ...request }) {
        if (signal?.aborted) {
            return { count: 0, ms: 0, why: 'stopped' };
        }
        return this.#ask('generate', request, {
            signal,
            prompt: ({ ms }) => onPrompt?.(ms),
            token: ({ token }) => onToken?.(token),
        });
    }

    /**
     * The digest of n tokens, the likeliest each: that of the host, and of a board with the same model.
     * @param {number} n
     * @param {number} [mode] 0, 1: the fastest path; 2: plain C
     * @param {{signal?: AbortSignal}} [options] signal ends it with an AbortError
     * @returns {Promise<string>} 0x and 16 digits
     */
    async digest(n, mode = 0, { signal } = {}) {
        signal?.throwIfAborted();
        const digest = await this.#ask('digest', { n, mode }, { signal });
        if (digest === null) {
            signal.throwIfAborted();
        }
        return digest;
    }

    /**
     * Mean microseconds a token by operation, of the last text that was written with its profile; null without one.
     * @returns {Promise<{name: string, us: number}[] | null>}
     */
    async profile() {
        return this.#ask('profile', {});
    }

    /**
     * The ids of a text, end-of-text not among them. It does not wait for a text that is being written.
     * @param {string | Uint8Array} text
     * @returns {Promise<Int32Array>}
     */
    async encode(text) {
        return this.#ask('encode', { text });
    }

    /**
     * The bytes of a token: none for end-of-text, and for an id outside the vocabulary.
     * @param {number} id
     * @returns {Uint8Array}
     */
    token(id) {
        const { ends, bytes } = this.#tokens;
        return id in ends ? bytes.slice(id === 0 ? 0 : ends[id - 1], ends[id]) : new Uint8Array();
    }

    /** Ends the worker. What still runs fails. */
    async close() {
        this.#fail(new Trouble('closed', 'The engine was closed.', 'Start it again.'));
    }

    // ---------------------------------------------------------------------------------------------------------- messages

    /** Asks the worker, and hands what it says before its answer to the functions of on, by kind. */
    #ask(kind, what, { signal, ...on } = {}) {
        return new Promise((resolve, reject) => {
            if (this.#end !== null) {
                reject(this.#end);
                return;
            }
            const number = ++this.#last;
            const stop = () => this.#worker.postMessage({ number, kind: 'stop' });
            const through = (then) => (value) => {
                signal?.removeEventListener('abort', stop);
                this.#open.delete(number);
                then(value);
            };
            this.#worker.postMessage({ number, kind, what }); // throws what cannot be sent, which rejects
            this.#open.set(number, { on, stop, resolve: through(resolve), reject: through(reject), thrown: [] });
            signal?.addEventListener('abort', stop);
        });
    }

    #answer({ number, kind, ...rest }) {
        const request = this.#open.get(number);
        if (request === undefined) {
            return; // of an engine that was closed
        }
        if (kind === 'failed') {
            request.reject(received(rest.error));
        } else if (kind === 'done') {
            request.thrown.length > 0 ? request.reject(request.thrown[0]) : request.resolve(rest.result);
        } else if (request.thrown.length === 0) {
            try {
                request.on[kind]?.(rest);
            } catch (error) { // of the caller's function: nobody listens any more
                request.thrown.push(error);
                request.stop();
            }
        }
    }

    #fail(error) {
        if (this.#end !== null) {
            return;
        }
        this.#end = error;
        this.#worker.terminate();
        for (const request of [...this.#open.values()]) {
            request.reject(error);
        }
    }
}

/** What of an image or a module goes to the worker: bytes, or an address. */
function sent(source) {
    return source instanceof URL || typeof source === 'string' ? new URL(source, globalThis.location?.href).href : source;
}
