/* The model in this browser. */
import { Engine } from './engine.js';
import { troubleOf } from './trouble.js';
import { Way } from './way.js';

/** Tells "loading" with a detail of stage, done and total. */
export class BrowserWay extends Way {
    #start = null; // AbortController of a start

    constructor(models) {
        super('browser', 'this browser', models);
        this.caption = 'not started';
        /** Seconds that the last start took. @type {number | null} */
        this.seconds = null;
    }

    /** Starts a model; one that runs, or starts, ends. @param {object} entry of models.json */
    async start(entry) {
        this.#start?.abort();
        const start = new AbortController();
        this.#start = start;
        const before = performance.now();
        const old = this.source;
        this.release({ caption: 'starting', busy: true, trouble: null });
        await old?.close();
        try {
            const engine = await Engine.start({
                image: new URL(entry.image, globalThis.location.href),
                signal: start.signal,
                onProgress: (detail) => this.dispatchEvent(new CustomEvent('loading', { detail })),
            });
            this.seconds = (performance.now() - before) / 1000;
            this.adopt(engine, 'ready', entry);
        } catch (error) {
            if (this.#start === start) {
                this.release({ caption: 'failed', trouble: troubleOf(error) });
            }
        }
    }
}
