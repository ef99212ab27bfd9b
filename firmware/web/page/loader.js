/* The boot loader of a chip, by esptool-js: what a flasher asks of it, each with its own failure. */
import { CHIP } from './loads.js';
import { LoaderLine } from './loader-line.js';
import { hexOf, md5 } from './md5.js';
import { resetChip } from './serial.js';
import { isStop, Trouble } from './trouble.js';

const BAUD = 115200; // of the boot loader at its start; means nothing to the chip's own USB port
const MB = 1 << 20;
const BLOCK_MS = 10000; // for a block of compressed bytes and what it becomes in flash
const OPTION1 = 0x6000812c; // a register of the chip that survives resets
const FORCE_LOADER = 1; // of it

/**
 * The bytes as the chip unpacks them. Level and window are the browser's, done outside of the page's thread.
 * @param {Uint8Array} bytes
 */
async function deflated(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Bytes as they are written: flash takes whole words, and an erased one is 0xFF.
 * @param {Uint8Array} bytes
 */
export function padded(bytes) {
    const length = Math.ceil(bytes.length / 4) * 4;
    const out = new Uint8Array(length).fill(0xff);
    out.set(bytes);
    return out;
}

/** A board that waits for a program. */
export class Loader {
    #esp;
    #line;
    #port;

    constructor(esptool, port, signal, onLog) {
        this.#port = port;
        this.#line = new LoaderLine(port, signal);
        const say = (text) => {
            const line = String(text).trim();
            if (line !== '') {
                onLog?.(line);
            }
        };
        this.#esp = new esptool.ESPLoader({
            transport: this.#line,
            baudrate: BAUD,
            romBaudrate: BAUD,
            terminal: { clean() {}, writeLine: say, write: say },
        });
    }

    /**
     * Resets a board into its boot loader, checks that it is the right chip, and starts esptool-js's helper program in its
     * memory, which reads and writes flash faster than the one in ROM, and can read it at all.
     * @param {object} options
     * @param {object} options.esptool the module esptool-js
     * @param {SerialPort} options.port that is closed
     * @param {AbortSignal} [options.signal]
     * @param {(line: string) => void} [options.onLog] is told what esptool-js says
     * @returns {Promise<Loader>}
     */
    static async connect({ esptool, port, signal, onLog }) {
        const loader = new Loader(esptool, port, signal, onLog);
        try {
            await loader.#run(() => loader.#start());
            return loader;
        } catch (error) {
            await loader.leave();
            throw error;
        }
    }

    async #start() {
        await this.#esp.connect('default_reset', 5);
        const { chip } = this.#esp;
        if (chip.CHIP_NAME !== CHIP.name) {
            throw new Trouble('wrong-chip', `This board has an ${chip.CHIP_NAME}; chiplm’s firmware is for the ${CHIP.name}.`,
                'Nothing was written. Connect a board with an ESP32-S3-N16R8 module.');
        }
        await this.#refuseLocked();
        await chip.postConnect(this.#esp);
        await this.#esp.runStub();
    }

    /** Boards whose flash is encrypted, or that run signed programs only, would not start what is written here. */
    async #refuseLocked() {
        const { parsedFlags, flashCryptCnt } = await this.#esp.getSecurityInfo();
        const crypt = flashCryptCnt.toString(2).replaceAll('0', '').length % 2 === 1;
        const locked = parsedFlags.SECURE_DOWNLOAD_ENABLE ? 'secure download mode'
            : parsedFlags.SECURE_BOOT_EN ? 'secure boot' : crypt ? 'flash encryption' : '';
        if (locked !== '') {
            throw new Trouble('locked', `This board was locked with ${locked}, so it does not run what this page can write.`,
                'Nothing was written. Connect another board.');
        }
    }

    /**
     * The size of the flash.
     * @returns {Promise<number>} bytes
     */
    async flashBytes() {
        return this.#run(async () => {
            const id = await this.#esp.readFlashId();
            const size = (id >> 16) & 0xff; // a power of two, in most makers' numbers
            const name = this.#esp.DETECTED_FLASH_SIZES[size];
            if (name === undefined) {
                throw new Trouble('flash-id', `The flash of the board tells no size that is known (0x${id.toString(16)}).`,
                    'Nothing was written. Press RESET and try again; if it stays so, take another board.');
            }
            return Number.parseInt(name, 10) * (name.endsWith('MB') ? MB : 1024);
        });
    }

    /**
     * Reads flash.
     * @param {number} offset
     * @param {number} length
     * @returns {Promise<Uint8Array>}
     */
    async read(offset, length) {
        return this.#run(async () => {
            const bytes = await this.#esp.readFlash(offset, length);
            const digest = hexOf(await this.#line.read(3000)); // the last packet of an answer, which esptool-js leaves
            if (bytes.length !== length || digest !== md5(bytes)) {
                throw new Trouble('read', 'What was read from the board was damaged on its way.',
                    'Nothing was written. Use another cable or USB port, and flash again.');
            }
            return bytes;
        });
    }

    /**
     * The MD5 of what flash holds.
     * @param {number} offset
     * @param {number} length
     * @returns {Promise<string>}
     */
    async md5(offset, length) {
        return this.#run(() => this.#esp.flashMd5sum(offset, length));
    }

    /**
     * Writes bytes, compressed on their way; flash is erased for them first.
     * @param {number} offset
     * @param {Uint8Array} bytes padded
     * @param {(share: number) => void} onProgress is told of the share that was taken, 0 to 1
     */
    async write(offset, bytes, onProgress) {
        await this.#run(async () => {
            const packed = await deflated(bytes);
            const blocks = await this.#esp.flashDeflBegin(bytes.length, packed.length, offset);
            const size = this.#esp.FLASH_WRITE_SIZE;
            const perBlock = BLOCK_MS + this.#esp.timeoutPerMb(this.#esp.ERASE_WRITE_TIMEOUT_PER_MB, bytes.length / blocks);
            for (let i = 0; i < blocks; i++) {
                const block = packed.slice(i * size, (i + 1) * size);
                await this.#esp.flashDeflBlock(block, i, perBlock);
                onProgress(Math.min(1, (i + 1) * size / packed.length));
            }
            await this.#esp.flashDeflFinish(false, perBlock);
        });
    }

    /** Starts the program that is on the board. Programs of others may have asked for the boot loader at every reset. */
    async restart() {
        await this.#run(async () => {
            await this.#esp.writeReg(OPTION1, 0, FORCE_LOADER);
            await resetChip(this.#port);
        });
    }

    /** Closes the port. */
    async close() {
        await this.#line.disconnect();
    }

    /** Closes the port after a failure; the program that is on the board starts, if that can still be asked for. */
    async leave() {
        await resetChip(this.#port).catch(() => {}); // the port may be gone
        await this.close();
    }

    /** Runs something of esptool-js; its errors become sentences, and what ended the line counts more than they do. */
    async #run(work) {
        try {
            return await work();
        } catch (error) {
            const first = this.#line.over ?? error;
            if (first instanceof Trouble || isStop(first)) {
                throw first;
            }
            throw this.#translated(first);
        }
    }

    #translated(error) {
        const text = error instanceof Error ? error.message : String(error);
        if (/failed to connect/i.test(text)) {
            return new Trouble('loader-silent', 'The board does not enter its boot loader.',
                'Hold BOOT, press RESET, release both; then flash again. Is the cable in the port named USB?', error);
        }
        if (/chip (id|magic)/i.test(text)) {
            return new Trouble('wrong-chip', `This board has a chip that is not known here (${text}); chiplm’s firmware is for the `
                + `${CHIP.name}.`, 'Nothing was written. Connect a board with an ESP32-S3-N16R8 module.', error);
        }
        return new Trouble('loader', `The boot loader of the board failed: ${text}`,
            'Use another cable or USB port, and flash again. The log has what it said before.', error);
    }
}
