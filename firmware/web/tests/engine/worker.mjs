/* The Worker of browsers, made of node's: engine.js runs in node as it is. */
import { Worker as Thread } from 'node:worker_threads';

/** Workers that were made and have not ended. */
export const running = new Set();

/** A module to load in a worker before its script; a test sets it. */
export const options = { before: null };

globalThis.Worker = class {
    constructor(url) {
        this.thread = new Thread(new URL('./worker-thread.mjs', import.meta.url),
            { workerData: { script: url.href, before: options.before } });
        running.add(this);
        this.thread.on('message', (data) => this.onmessage({ data }));
        this.thread.on('messageerror', () => this.onmessageerror());
        this.thread.on('error', (error) => this.onerror({ message: error.message }));
        this.thread.on('exit', () => running.delete(this));
    }

    postMessage(message) {
        this.thread.postMessage(message);
    }

    terminate() {
        this.thread.terminate();
    }
};
