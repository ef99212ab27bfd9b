/* Flashing: what goes where, only what differs, compared after it was written. */
import { Loader, padded } from './loader.js';
import { md5 } from './md5.js';
import { modelPartition, parseTable, TABLE_BYTES, TABLE_OFFSET } from './partitions.js';
import { Trouble } from './trouble.js';

/**
 * @typedef {object} Write
 * @property {string} name
 * @property {number} offset
 * @property {Uint8Array} bytes padded
 * @property {number} size of the file
 * @property {string} md5
 * @property {string} sha256 of the file
 * @property {boolean} same whether the board holds it already
 */

const hex = (n) => `0x${n.toString(16)}`;
const digits = (n) => n.toLocaleString('en-GB');

/**
 * What goes where. The table that counts is that of the firmware which is to be written, or else the board's own.
 * @param {import('./loads.js').Load} load
 * @param {object} options
 * @param {boolean} options.modelOnly
 * @param {number} options.flashBytes of the board
 * @param {Uint8Array} options.table as the board holds it
 * @returns {Write[]} the model last
 * @throws {Trouble} when something does not fit
 */
export function planWrites(load, { modelOnly, flashBytes, table }) {
    const firmware = modelOnly || load.firmware === null ? [] : load.firmware;
    const own = firmware.find(({ offset }) => offset === TABLE_OFFSET);
    const where = own === undefined ? 'on the board' : 'of this firmware';
    const place = modelPartition(parseTable(own === undefined ? table : own.bytes, where), where);
    if (load.model.bytes.length > place.bytes) {
        throw new Trouble('fit', `The model has ${digits(load.model.bytes.length)} bytes, the partition for it ${where} `
            + `${digits(place.bytes)}.`, 'Choose a smaller model, or firmware with more room for one.');
    }
    const parts = [...firmware, { ...load.model, offset: place.offset }];
    for (const { name, offset, bytes } of parts) {
        if (offset + bytes.length > flashBytes) {
            throw new Trouble('fit', `The board has ${digits(flashBytes)} bytes of flash; the ${name} would end at byte `
                + `${digits(offset + bytes.length)}.`, 'Nothing was written. Take a board with 16 MB of flash (N16R8), or a smaller model.');
        }
    }
    return parts.map(({ name, offset, bytes, sha256 }) => {
        const whole = padded(bytes);
        return { name, offset, bytes: whole, size: bytes.length, md5: md5(whole), sha256, same: false };
    });
}

/**
 * Puts a load on a board. What the board holds already is not written again. When it resolves, the port is closed and the
 * board has started anew.
 * @param {object} options
 * @param {object} options.esptool the module esptool-js
 * @param {SerialPort} options.port that is closed
 * @param {import('./loads.js').Load} options.load
 * @param {boolean} [options.modelOnly]
 * @param {AbortSignal} [options.signal]
 * @param {(step: string) => void} [options.onStep] "connect", "compare", "write", "verify", "restart"
 * @param {(writes: Write[]) => void} [options.onPlan] what is written, and what is there already
 * @param {(progress: {name: string, done: number, total: number}) => void} [options.onProgress] bytes of flash
 * @param {() => void} [options.onWriting] right before the first byte is written
 * @param {(line: string) => void} [options.onLog] is told what esptool-js says
 * @returns {Promise<Write[]>}
 */
export async function flash({ esptool, port, load, modelOnly = false, signal, onStep, onPlan, onProgress, onWriting, onLog }) {
    onStep?.('connect');
    const loader = await Loader.connect({ esptool, port, signal, onLog });
    let begun = false;
    try {
        onStep?.('compare');
        const flashBytes = await loader.flashBytes();
        const writes = planWrites(load, { modelOnly, flashBytes, table: await loader.read(TABLE_OFFSET, TABLE_BYTES) });
        for (const write of writes) {
            write.same = await loader.md5(write.offset, write.bytes.length) === write.md5;
        }
        onPlan?.(writes);
        const news = writes.filter(({ same }) => !same);
        const total = news.reduce((sum, { bytes }) => sum + bytes.length, 0);
        let before = 0;
        for (const write of news) {
            onStep?.('write');
            if (!begun) {
                begun = true;
                onWriting?.();
            }
            onProgress?.({ name: write.name, done: before, total });
            await loader.write(write.offset, write.bytes, (share) => {
                onProgress?.({ name: write.name, done: before + share * write.bytes.length, total });
            });
            before += write.bytes.length;
        }
        for (const write of news) {
            onStep?.('verify');
            if (await loader.md5(write.offset, write.bytes.length) !== write.md5) {
                throw new Trouble('verify', `The board does not hold what was written at ${hex(write.offset)} (${write.name}).`,
                    'Do not use it so: flash again, with another cable or USB port; if it stays so, its flash is worn out.');
            }
        }
        onStep?.('restart');
        await loader.restart();
        await loader.close();
        return writes;
    } catch (error) {
        await loader.leave();
        throw begun ? broken(error) : error;
    }
}

/** What ends the writing leaves a board with a part of it: that has to be said, whatever it was. */
function broken(error) {
    const rest = 'The board holds only a part of it now, and starts again when you flash it again: nothing else is broken.';
    if (error instanceof Trouble) {
        return error.code === 'verify' ? error
            : new Trouble(`flash-${error.code}`, `${error.message} Writing was not finished.`, `${error.todo} ${rest}`, error);
    }
    if (error instanceof Error && error.name === 'AbortError') {
        return new Trouble('flash-stopped', 'Writing was stopped.', rest, error);
    }
    return new Trouble('flash-unexpected', `Writing ended early: ${error?.message ?? error}.`, rest, error);
}
