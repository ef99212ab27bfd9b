/*
 * The line to a chip's boot loader: packets in SLIP framing. It stands in for esptool-js's Transport and has what ESPLoader
 * calls of it. That one polls with timers and copies what it has at every byte; a cable that is pulled, or a person who
 * stops, is noticed by its time limits only, and a failed write leaves the port locked. This one ends at once.
 */
import { goneTrouble } from './lines.js';
import { openPort, serialStream } from './serial.js';
import { Trouble } from './trouble.js';

const END = 0xc0;
const ESC = 0xdb;
const ESC_END = 0xdc;
const ESC_ESC = 0xdd;
const MOST_PEEK = 8192; // bytes of boot log that ESPLoader looks at
const TAKING = 10000; // ms that a port may take for a packet

/**
 * A packet with its frame.
 * @param {Uint8Array} packet
 * @returns {Uint8Array}
 */
export function slip(packet) {
    let length = packet.length + 2;
    for (const byte of packet) {
        length += byte === END || byte === ESC ? 1 : 0;
    }
    const out = new Uint8Array(length);
    let at = 0;
    out[at++] = END;
    for (const byte of packet) {
        if (byte === END || byte === ESC) {
            out[at++] = ESC;
            out[at++] = byte === END ? ESC_END : ESC_ESC;
        } else {
            out[at++] = byte;
        }
    }
    out[at] = END;
    return out;
}

/** Finds packets in what arrives. What stands between frames, such as a boot log, is passed over. */
export class SlipReader {
    #packet = null; // bytes since the start of a frame; null outside
    #escaping = false;

    /**
     * @param {Uint8Array} bytes
     * @returns {Uint8Array[]} the packets that are complete now
     */
    take(bytes) {
        const packets = [];
        for (const byte of bytes) {
            if (byte === END) {
                if (this.#packet !== null && this.#packet.length > 0) {
                    packets.push(Uint8Array.from(this.#packet));
                    this.#packet = null;
                } else {
                    this.#packet = []; // an empty frame: the line was out of step
                }
                this.#escaping = false;
            } else if (this.#packet === null) {
                continue;
            } else if (this.#escaping) {
                this.#packet.push(byte === ESC_END ? END : byte === ESC_ESC ? ESC : byte);
                this.#escaping = false;
            } else if (byte === ESC) {
                this.#escaping = true;
            } else {
                this.#packet.push(byte);
            }
        }
        return packets;
    }

    /** Forgets a frame that has begun. */
    reset() {
        this.#packet = null;
        this.#escaping = false;
    }
}

/** What esptool-js's ESPLoader takes for its Transport. */
export class LoaderLine {
    #port;
    #signal;
    #stream = null;
    #slip = new SlipReader();
    #packets = [];
    #recent = new Uint8Array(0);
    #wake = null;

    /**
     * @param {SerialPort} port that is closed
     * @param {AbortSignal} [signal] ends everything that waits
     */
    constructor(port, signal) {
        this.#port = port;
        this.#signal = signal;
        this.tracing = false;
        /** Why the line is over; null while it is not. @type {Error | null} */
        this.over = null;
        signal?.addEventListener('abort', () => this.#end(signal.reason));
    }

    #end(error) {
        this.over ??= error;
        this.#wake?.();
    }

    // ---------------------------------------------------------------------------------------------- what a port is

    getInfo() {
        return '';
    }

    getVid() {
        return this.#port.getInfo().usbVendorId;
    }

    getPid() {
        return this.#port.getInfo().usbProductId;
    }

    trace() {}

    // -------------------------------------------------------------------------------------------------- connection

    async connect(baudRate) {
        this.#signal?.throwIfAborted();
        await openPort(this.#port, { baudRate });
        this.#stream = serialStream(this.#port);
        this.#listen(this.#stream);
    }

    /** Reads by itself, from connect on. */
    readLoop() {}

    async #listen(stream) {
        try {
            for (let bytes = await stream.read(); bytes !== null; bytes = await stream.read()) {
                this.#recent = joined(this.#recent, bytes).slice(-MOST_PEEK);
                this.#packets.push(...this.#slip.take(bytes));
                this.#wake?.();
            }
        } catch (error) {
            this.#end(error);
        }
    }

    async disconnect() {
        await this.#stream?.close();
        this.#stream = null;
    }

    // ----------------------------------------------------------------------------------------------------- packets

    async write(packet) {
        this.#check();
        let timer;
        const stuck = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new Trouble('stuck', 'The port takes no more bytes.',
                'Pull the cable, plug it in again, and flash again.')), TAKING);
        });
        try {
            await Promise.race([this.#stream.write(slip(packet)), stuck]);
        } catch (error) {
            this.#end(error);
            throw this.over;
        } finally {
            clearTimeout(timer);
        }
    }

    /**
     * The next packet.
     * @param {number} timeout milliseconds
     * @returns {Promise<Uint8Array>}
     */
    async read(timeout) {
        const until = performance.now() + timeout;
        while (this.#packets.length === 0) {
            this.#check();
            const left = until - performance.now();
            if (left <= 0) {
                throw new Trouble('loader-silent', 'The boot loader of the board does not answer.',
                    'Hold BOOT, press RESET, release both; then flash again.');
            }
            await new Promise((resolve) => {
                const timer = setTimeout(resolve, left);
                this.#wake = () => {
                    clearTimeout(timer);
                    resolve();
                };
            });
            this.#wake = null;
        }
        return this.#packets.shift();
    }

    #check() {
        if (this.over !== null) {
            throw this.over;
        }
        if (this.#stream === null) {
            throw goneTrouble();
        }
    }

    /** What arrived since the last flush. */
    peek() {
        return this.#recent;
    }

    flushInput() {
        this.#packets = [];
        this.#recent = new Uint8Array(0);
        this.#slip.reset();
    }

    async drainInput() {
        await new Promise((resolve) => { setTimeout(resolve, 200); });
        this.flushInput();
    }

    // ----------------------------------------------------------------------------------------------------- signals

    #dtr = false;

    async setDTR(state) {
        this.#dtr = state;
        await this.setSignals(state, undefined);
    }

    /** With DTR once more, since a driver of Windows sends RTS along with it only. */
    async setRTS(state) {
        await this.setSignals(undefined, state);
        await this.setDTR(this.#dtr);
    }

    async setSignals(dtr, rts) {
        this.#check();
        const signals = {};
        if (dtr !== undefined) {
            this.#dtr = dtr;
            signals.dataTerminalReady = dtr;
        }
        if (rts !== undefined) {
            signals.requestToSend = rts;
        }
        try {
            await this.#port.setSignals(signals);
        } catch (error) {
            this.#end(goneTrouble(error));
            throw this.over;
        }
    }
}

function joined(a, b) {
    const out = new Uint8Array(a.length + b.length);
    out.set(a);
    out.set(b, a.length);
    return out;
}
