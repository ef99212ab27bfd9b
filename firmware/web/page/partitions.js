/* The partition table of a board, as it lies in flash. */
import { hexOf, md5 } from './md5.js';
import { Trouble } from './trouble.js';

/** Where the table lies, and how much of it there is, unused entries included. */
export const TABLE_OFFSET = 0x8000;
export const TABLE_BYTES = 0xc00;

/** The name of the partition that holds an image. */
export const MODEL_PARTITION = 'model';

const WITH_FIRMWARE = 'Flash firmware and model, for the table comes with the firmware: start the page with it (chiplm page '
    + '--firmware firmware/build), or choose a folder that carries it.';

const ENTRY = 32;
const NAME_AT = 12;
const SECTOR = 0x1000;

/**
 * @typedef {object} Partition
 * @property {string} name
 * @property {number} type
 * @property {number} subtype
 * @property {number} offset
 * @property {number} bytes
 */

function bad(what, where) {
    return new Trouble('table', `The partition table ${where} cannot be used: ${what}.`,
        WITH_FIRMWARE);
}

/**
 * Reads a table: entries of 32 bytes, their MD5, then bytes of 0xFF. One without the MD5, as older tools wrote, is read too.
 * @param {Uint8Array} bytes
 * @param {string} [where] whose table it is, for a sentence
 * @returns {Partition[]}
 * @throws {Trouble}
 */
export function parseTable(bytes, where = 'on the board') {
    const table = [];
    for (let at = 0; at + ENTRY <= Math.min(bytes.length, TABLE_BYTES); at += ENTRY) {
        const entry = bytes.subarray(at, at + ENTRY);
        if (entry.every((byte) => byte === 0xff)) {
            return checked(table, where);
        }
        if (entry[0] === 0xeb && entry[1] === 0xeb) {
            if (hexOf(entry.subarray(16)) !== md5(bytes.subarray(0, at))) {
                throw bad('its checksum is wrong, so it was damaged or written in part', where);
            }
            return checked(table, where);
        }
        if (entry[0] !== 0xaa || entry[1] !== 0x50) {
            throw bad(`entry ${table.length} is none`, where);
        }
        const view = new DataView(entry.buffer, entry.byteOffset, ENTRY);
        const name = String.fromCharCode(...entry.subarray(NAME_AT, NAME_AT + 16)).split('\0', 1)[0];
        table.push({ name, type: entry[2], subtype: entry[3], offset: view.getUint32(4, true), bytes: view.getUint32(8, true) });
    }
    throw bad('it has no end', where);
}

function checked(table, where) {
    if (table.length === 0) {
        throw bad('it has no entry', where);
    }
    for (const { name, offset, bytes } of table) {
        if (offset % SECTOR !== 0 || bytes === 0 || offset < TABLE_OFFSET + SECTOR) {
            throw bad(`the partition ${name} lies where none can lie`, where);
        }
    }
    return table;
}

/**
 * The partition of the model.
 * @param {Partition[]} table
 * @param {string} [where]
 * @returns {Partition}
 * @throws {Trouble} if there is none
 */
export function modelPartition(table, where = 'on the board') {
    const found = table.find(({ name }) => name === MODEL_PARTITION);
    if (found === undefined) {
        const names = table.map(({ name }) => name).join(', ');
        throw new Trouble('table', `The partition table ${where} has no partition “${MODEL_PARTITION}” (it has ${names}), so it `
            + 'belongs to other firmware.', WITH_FIRMWARE);
    }
    return found;
}
