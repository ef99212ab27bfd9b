/* A board on a USB port: to talk to, and to flash. */
import { Board } from './board.js';
import { flash } from './flash.js';
import { imageCrc } from './loads.js';
import { NO_SERVER } from './models.js';
import { choosePort, isBridge, openPort, serialStream, webSerial } from './serial.js';
import { keep } from './settings.js';
import { Trouble, troubleOf } from './trouble.js';
import { LineWay } from './way.js';

const AGAIN = 8000; // ms within which a board that was reset is on its port again
const MARK = 'chiplm.writing'; // in the session's storage: a board is being written

export class BoardWay extends LineWay {
    #port = null;

    /**
     * @param {object[]} models of models.json
     * @param {{storage?: Storage}} [options]
     */
    constructor(models, { storage = globalThis.sessionStorage } = {}) {
        super('board', 'the board', models);
        this.storage = storage;
        /** AbortController of the flashing that runs; null while none does. @type {AbortController | null} */
        this.flashing = null;
        const left = storage.getItem(MARK);
        if (left !== null) {
            storage.removeItem(MARK);
            this.trouble = new Trouble('left', `The page was left while ${left} was being written to a board.`,
                'The board may hold a part of it: flash it again. Nothing else is broken.');
        }
    }

    /** Why this browser cannot; null when it can. @returns {Trouble | null} */
    get missing() {
        try {
            webSerial();
            return null;
        } catch (error) {
            return troubleOf(error);
        }
    }

    /**
     * Connects; without a port that this page was given before, the browser lets the person choose one. To be called from a
     * click, for a browser wants that.
     * @param {{any?: boolean, again?: boolean}} [options] any: offer all ports; again: choose anew
     */
    async connect({ any = false, again = false } = {}) {
        try {
            const serial = webSerial();
            const port = await this.#choose(serial, { any, again });
            await this.connectBy(async (talk) => {
                this.#port = port;
                await openPort(port);
                return this.#open(port, talk);
            });
        } catch (error) {
            this.connecting === null ? this.release({ caption: 'no board', trouble: troubleOf(error) }) : this.set({ trouble: troubleOf(error) });
        }
    }

    async #choose(serial, { any, again }) {
        if (!any && !again) {
            const known = await serial.getPorts(); // that this page was given, and that are plugged in
            if (known.includes(this.#port)) {
                return this.#port;
            }
            if (known.length === 1) {
                return known[0];
            }
        }
        return choosePort(serial, { any });
    }

    async #open(port, talk) {
        try {
            return await Board.open(serialStream(port), talk);
        } catch (error) {
            if (isBridge(port) && ['silent', 'noise'].includes(error?.code)) {
                throw new Trouble('bridge', 'This port belongs to a chip beside the ESP32-S3, on which the firmware does not talk.',
                    'Plug the cable into the board’s other port, the one named USB (not UART or COM); then connect, and choose it.', error);
            }
            throw error;
        }
    }

    /**
     * Puts a load on a board, and connects to it. To be called from a click.
     * @param {object} options
     * @param {() => Promise<import('./loads.js').Load>} options.load
     * @param {boolean} options.modelOnly
     * @param {object} options.tell onStep, onPlan, onProgress of flash; onStep is told "load" too
     * @returns {Promise<boolean>} whether all went well
     */
    async flash({ load, modelOnly, tell }) {
        const stop = new AbortController();
        let written = false;
        try {
            const port = await this.#choose(webSerial(), {});
            await this.disconnect();
            this.set({ busy: true, caption: 'flashing', trouble: null, flashing: stop });
            tell.onStep('load');
            const [goods, esptool] = await unlessStopped(Promise.all([load(), this.loader()]), stop.signal);
            this.#port = port;
            await flash({
                esptool, port, load: goods, modelOnly, signal: stop.signal, ...tell,
                onWriting: () => keep(this.storage, MARK, goods.title), onLog: (line) => this.hear(line),
            });
            written = true;
            this.storage.removeItem(MARK);
            tell.onStep('connect-again');
            await this.#reopen(port, stop.signal);
            this.adoptBoard(await this.#open(this.#port, this.talk(stop.signal)));
            this.#compare(goods);
            return true;
        } catch (error) {
            this.storage.removeItem(MARK);
            const stopped = error?.name === 'AbortError';
            this.release({
                caption: 'no board',
                trouble: !stopped ? troubleOf(error)
                    : written ? new Trouble('flash-stopped', 'All was written and compared. The page did not wait for the board.', 'Connect to it.', error)
                        : new Trouble('flash-stopped', 'Stopped before anything was written.', 'The board is as it was.', error),
            });
            return false;
        } finally {
            this.set({ flashing: null });
        }
    }

    /** The program that speaks to the boot loader. */
    async loader() {
        try {
            return await import('./vendor/esptool.js');
        } catch (error) {
            throw new Trouble('fetch', 'The page could not read vendor/esptool.js where it came from.', NO_SERVER, error);
        }
    }

    /** Opens the port of a board that was reset: it may be gone for a moment, and come back as another. */
    async #reopen(port, signal) {
        const serial = webSerial();
        for (const end = performance.now() + AGAIN; ;) {
            try {
                signal.throwIfAborted();
                await openPort(port);
                this.#port = port;
                return;
            } catch (error) {
                signal.throwIfAborted();
                if (performance.now() > end) {
                    throw new Trouble('not-back', 'All was written and compared, but the board did not come back to its port.',
                        'Press RESET on it, or pull its cable and plug it in again; then connect.', error);
                }
            }
            await new Promise((resolve) => { setTimeout(resolve, 300); });
            const known = await serial.getPorts();
            port = known.length === 1 ? known[0] : port;
        }
    }

    /** That the board runs the image that was written. */
    #compare(goods) {
        const want = imageCrc(goods.model.bytes);
        const { image_crc32: got } = this.source.info;
        if (this.trouble === null && got !== want) {
            this.set({
                trouble: new Trouble('other-model', `The board runs an image with the checksum ${got}; ${want} was written.`,
                    'Its firmware takes its model from another place: flash firmware and model.'),
            });
        }
    }
}

/** What a promise gives, unless signal aborts first. */
function unlessStopped(promise, signal) {
    return new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        promise.then(resolve, reject);
    });
}
