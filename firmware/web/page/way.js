/* A way to run the model: this browser, a board, the virtual board. What they have in common. */
import { isStop, troubleOf } from './trouble.js';

const DIGEST_TOKENS = 64; // where no reference says how many
const MOST_SAID = 400; // lines of a log

/**
 * Whether the bits are right: a digest of some tokens, held against what it must be.
 * @typedef {object} Proof
 * @property {'running' | 'equal' | 'differs' | 'alone' | 'failed'} state alone: there is nothing to compare it with
 * @property {number} n tokens
 * @property {string} [value]
 * @property {string} [want]
 * @property {string} [by] whose it is that it must equal
 */

/** Tells "change" whenever anything of it changed, and "chosen" when it is looked at. */
export class Way extends EventTarget {
    #proving = null; // AbortController of the digest that runs

    /**
     * @param {string} id "browser", "board" or "virtual"
     * @param {string} name in a sentence
     * @param {object[]} models of models.json
     */
    constructor(id, name, models) {
        super();
        this.id = id;
        this.name = name;
        this.models = models;
        /** Who writes; null while nobody does. @type {import('./engine.js').Engine | import('./board.js').Board | null} */
        this.source = null;
        /** What it is called in its tab. */
        this.caption = 'no board';
        /** Something is under way that Write has to wait for. */
        this.busy = false;
        /** @type {import('./trouble.js').Trouble | null} */
        this.trouble = null;
        /** The entry of models.json that runs here; null for a model of one's own. */
        this.model = null;
        /** @type {Proof | null} */
        this.proof = null;
        /** The other ways, whose digests of the same model count too. @type {Way[]} */
        this.others = [];
    }

    /** Changes fields, and tells. @param {Partial<Way>} fields */
    set(fields) {
        Object.assign(this, fields);
        this.dispatchEvent(new Event('change'));
    }

    /** Whether Write would write. */
    get ready() {
        return this.source !== null && !this.busy && (this.source.trouble ?? null) === null;
    }

    /**
     * Takes a source, and starts to prove it.
     * @param {object} source
     * @param {string} caption
     * @param {object} [entry] of models.json that it was started with; else the first with its weights is taken
     */
    adopt(source, caption, entry) {
        const { sha256 } = source.info;
        const has = (one) => sha256 !== undefined && one?.facts.model_sha256 === sha256;
        const model = (has(entry) ? entry : this.models.find(has)) ?? null;
        this.set({ source, caption, model, busy: false, trouble: source.trouble ?? null, proof: null });
        if (this.ready) {
            this.prove();
        }
    }

    /** Lets go of the source. @param {Partial<Way>} fields what to say instead */
    release(fields) {
        this.pauseProof();
        this.set({ source: null, model: null, proof: null, busy: false, ...fields });
    }

    /** Computes the digest, and compares it. Writing comes first: it stops this, and starts it again. */
    async prove() {
        const { source, model } = this;
        if (source === null || !this.ready || this.#proving !== null || (this.proof !== null && this.proof.state !== 'running')) {
            return;
        }
        const n = model?.digest?.n ?? Math.min(DIGEST_TOKENS, source.info.context_length);
        const proving = new AbortController();
        this.#proving = proving;
        this.set({ proof: { state: 'running', n } });
        let proof;
        try {
            const value = await source.digest(n, 0, { signal: proving.signal });
            proof = this.#compared(n, value);
        } catch (error) {
            if (isStop(error) || proving.signal.aborted) { // what comes next tells what is wrong
                return;
            }
            proof = { state: 'failed', n };
            if (this.source === source && this.trouble === null) {
                this.trouble = troubleOf(error);
            }
        } finally {
            if (this.#proving === proving) {
                this.#proving = null;
            }
        }
        if (this.source === source) {
            this.set({ proof });
        }
    }

    #compared(n, value) {
        const sha = this.source?.info.sha256;
        const other = this.others.find((way) => way.source?.info.sha256 === sha && way.proof?.n === n && way.proof.value);
        const want = this.model?.digest?.value ?? other?.proof.value;
        const by = this.model?.digest ? 'the reference' : other?.name;
        if (want === undefined) {
            return { state: 'alone', n, value };
        }
        return { state: value === want ? 'equal' : 'differs', n, value, want, by };
    }

    /** Stops the digest, if it runs. */
    pauseProof() {
        this.#proving?.abort();
        this.#proving = null;
    }
}

/** A way whose source is a board: it may go by itself, and it has a log. */
export class LineWay extends Way {
    /** What the board said besides its answers, the oldest first. @type {string[]} */
    said = [];

    /** Gives up the connecting that runs; null while none does. @type {AbortController | null} */
    connecting = null;
    #attempt = Promise.resolve(); // until the connecting that ran last is over

    /** Notes a line, and tells "log". @param {string} line */
    hear(line) {
        this.said.push(line);
        if (this.said.length > MOST_SAID) {
            this.said.shift();
        }
        this.dispatchEvent(new Event('log'));
    }

    /**
     * Connects, after what there was is over. A disconnect meanwhile gives it up.
     * @param {(options: object) => Promise<import('./board.js').Board>} open is given the options of Board.open
     */
    async connectBy(open) {
        await this.disconnect();
        const connecting = new AbortController();
        this.set({ busy: true, caption: 'connecting', connecting });
        this.#attempt = this.#connect(open, connecting);
        await this.#attempt;
    }

    async #connect(open, connecting) {
        try {
            const board = await open(this.talk(connecting.signal));
            this.connecting = null;
            this.adoptBoard(board);
        } catch (error) {
            this.release({ caption: 'no board', connecting: null, trouble: isStop(error) ? null : troubleOf(error) });
        }
    }

    /** Options for Board.open. @param {AbortSignal} signal */
    talk(signal) {
        return { signal, onRemark: (line) => this.hear(line) };
    }

    /** @param {import('./board.js').Board} board */
    adoptBoard(board) {
        this.adopt(board, board.trouble === null ? 'ready' : 'not ready');
        board.gone.then(async (trouble) => {
            if (this.source === board) {
                await board.close();
                this.release({ caption: 'gone', trouble });
            }
        });
    }

    /** Ends the conversation. */
    async disconnect() {
        const { source } = this;
        this.connecting?.abort();
        this.release({ caption: 'no board', trouble: null });
        await source?.close();
        await this.#attempt; // its port is closed then
    }
}
