/*
 * What can be put on a board: a released model that the server has, or a folder that chiplm export wrote. Every byte is
 * checked against its hash before any is written.
 */
import { hexOf } from './md5.js';
import { isListOf, isObject, isText } from './shapes.js';
import { Trouble } from './trouble.js';

/** The chip that this page flashes, as esptool and as the files name it, and its number in the header of a program. */
export const CHIP = { name: 'ESP32-S3', target: 'esp32s3', id: 9 };

const PROGRAM_MAGIC = 0xe9;
const DESCRIPTION = 0xabcd5432; // starts the description of an application, in its first segment
const DESCRIPTION_AT = 32;
const IMAGE_MAGIC = [0x43, 0x4c, 0x4d, 0];
const IMAGE_HEADER = 64;
const MODEL_FILE = 'model.clm';

/**
 * @typedef {object} Part
 * @property {string} name
 * @property {number | null} offset in flash; null: the partition table says it
 * @property {Uint8Array} bytes
 * @property {string} sha256
 */

/**
 * @typedef {object} Load
 * @property {string} title
 * @property {Part} model
 * @property {Part[] | null} firmware boot loader, partition table, application; null: none is at hand
 * @property {string} version of that firmware; "" if it says none
 */

/** @param {Uint8Array} bytes */
async function sha256(bytes) {
    if (globalThis.crypto?.subtle === undefined) {
        throw new Trouble('insecure', 'Browsers compute hashes only in a page that comes over https or from this machine.',
            'Open it at http://127.0.0.1, as chiplm page does, or over https.');
    }
    return hexOf(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
}

function checkHash(name, bytes, got, want, todo) {
    if (got !== want) {
        throw new Trouble('damaged', `${name} is not the file that was written: its hash is ${got.slice(0, 12)}…, not `
            + `${String(want).slice(0, 12)}….`, todo);
    }
}

/** Refuses what is no image, or is cut. */
function checkImage(name, bytes, todo) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    if (bytes.length < IMAGE_HEADER || IMAGE_MAGIC.some((byte, i) => bytes[i] !== byte)) {
        throw new Trouble('image', `${name} is no image of a model.`, todo);
    }
    if (view.getBigUint64(16, true) !== BigInt(bytes.length)) {
        throw new Trouble('image', `${name} has ${bytes.length} bytes, of ${view.getBigUint64(16, true)}: it was cut.`, todo);
    }
}

/**
 * The CRC-32 in the header of an image, as request I of the protocol writes it.
 * @param {Uint8Array} image
 */
export function imageCrc(image) {
    return new DataView(image.buffer, image.byteOffset, image.length).getUint32(28, true).toString(16).padStart(8, '0');
}

/** Refuses a program of another chip. */
function checkProgram(part, todo) {
    const view = new DataView(part.bytes.buffer, part.bytes.byteOffset, part.bytes.length);
    if (part.bytes.length < 24 || part.bytes[0] !== PROGRAM_MAGIC) {
        throw new Trouble('firmware', `The ${part.name} is no program for a chip of this family.`, todo);
    }
    const id = view.getUint16(12, true);
    if (id !== CHIP.id) {
        throw new Trouble('firmware', `The ${part.name} was built for another chip (number ${id}, the ${CHIP.name} is ${CHIP.id}).`,
            `Build it for this one: idf.py set-target ${CHIP.target}.`);
    }
}

/**
 * What an application says of itself; "" if nothing.
 * @param {Uint8Array} bytes
 */
export function versionOf(bytes) {
    const at = DESCRIPTION_AT + 16;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    if (bytes.length < at + 32 || view.getUint32(DESCRIPTION_AT, true) !== DESCRIPTION) {
        return '';
    }
    const version = String.fromCharCode(...bytes.subarray(at, at + 32)).split('\0', 1)[0];
    return /^[!-~]+$/.test(version) ? version : '';
}

function checkFirmware(parts, todo) {
    if (parts.length !== 3) {
        throw new Trouble('firmware', `The firmware has ${parts.length} parts; boot loader, partition table and application `
            + 'are wanted.', todo);
    }
    const [bootloader, , application] = parts;
    if (bootloader.offset !== 0) {
        throw new Trouble('firmware', `The boot loader lies at 0x${bootloader.offset.toString(16)}; an ${CHIP.name} starts at 0x0.`, todo);
    }
    checkProgram(bootloader, todo);
    checkProgram(application, todo);
    return versionOf(application.bytes);
}

const SERVER = 'Load the page anew; if it happens again, build the page anew (make build).';

async function fetched(url, name, want, onBytes) {
    let response = null;
    try {
        response = await fetch(url);
    } catch {
        // is told below
    }
    if (response === null || !response.ok) {
        throw new Trouble('fetch', `${name} could not be loaded from the server of this page${response ? ` (${response.status})` : ''}.`,
            'Is chiplm page still running? Start it again, and load the page anew.');
    }
    const bytes = await collected(response, onBytes);
    const hash = await sha256(bytes);
    checkHash(name, bytes, hash, want, SERVER);
    return { bytes, sha256: hash };
}

/**
 * The body of a response.
 * @param {Response} response
 * @param {(bytes: number) => void} [onBytes] is told of bytes as they come
 * @returns {Promise<Uint8Array>}
 */
export async function collected(response, onBytes) {
    const parts = [];
    let length = 0;
    for (const reader = response.body.getReader(); ;) {
        const { value, done } = await reader.read();
        if (done) {
            break;
        }
        parts.push(value);
        length += value.length;
        onBytes?.(value.length);
    }
    const bytes = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
        bytes.set(part, at);
        at += part.length;
    }
    return bytes;
}

/**
 * A released model, and the firmware that the server has.
 * @param {object} entry of models.json
 * @param {object | null} firmware firmware.json
 * @param {{base?: string, onBytes?: (bytes: number) => void}} [options]
 * @returns {Promise<Load>}
 */
export async function releasedLoad(entry, firmware, { base = globalThis.location?.href, onBytes } = {}) {
    const image = entry.board?.[CHIP.target];
    if (image === undefined) {
        throw new Trouble('target', `${entry.name} cannot go on the ${CHIP.name}: ${entry.refused ?? 'it was not exported for it'}.`,
            `Choose another model, or export it yourself and choose the folder: chiplm export --model ${entry.name} --target ${CHIP.target}.`);
    }
    if (firmware !== null && firmware.chip !== CHIP.target) {
        throw new Trouble('firmware', `The firmware at hand is for the ${firmware.chip}, not for the ${CHIP.target}.`,
            'Give chiplm page --firmware a build for this chip.');
    }
    const model = await fetched(new URL(image.image, base), `The model ${entry.name}`, image.sha256, onBytes);
    checkImage(`The model ${entry.name}`, model.bytes, SERVER);
    let parts = null;
    if (firmware !== null) {
        parts = [];
        for (const file of [...firmware.files].sort((a, b) => a.offset - b.offset)) {
            parts.push({ name: file.name, offset: file.offset, ...await fetched(new URL(file.url, base), file.name, file.sha256, onBytes) });
        }
    }
    return {
        title: entry.name,
        model: { name: 'model', offset: null, ...model },
        firmware: parts,
        version: parts === null ? '' : checkFirmware(parts, 'Build the firmware again (idf.py build), and start chiplm page with it.'),
    };
}

const EXPORT_AGAIN = `Export again: chiplm export RUN --target ${CHIP.target}.`;

/** The files of the folder itself, by name, without those of folders in it. */
function byName(files) {
    const found = new Map();
    for (const file of files) {
        const path = file.webkitRelativePath || file.name;
        if (path.split('/').length <= 2) {
            found.set(file.name, file);
        }
    }
    return found;
}

async function jsonFile(file, todo) {
    try {
        return JSON.parse(await file.text());
    } catch (error) {
        throw new Trouble('damaged', `${file.name} is not JSON: it was changed or cut.`, todo, error);
    }
}

/**
 * A folder that chiplm export wrote, as the person picked it.
 * @param {Iterable<File>} files
 * @returns {Promise<Load>}
 */
export async function folderLoad(files) {
    const found = byName(files);
    const manifestFile = found.get('manifest.json');
    const manifest = manifestFile === undefined ? null : await jsonFile(manifestFile, EXPORT_AGAIN);
    if (manifest?.kind !== 'chiplm export' || manifest.version !== 1 || !isObject(manifest.files)) {
        throw new Trouble('folder', 'This is no folder that chiplm export wrote: it has no manifest.json of it.',
            `Choose one such as exports/combo-${CHIP.target}.`);
    }
    if (manifest.target !== CHIP.target) {
        throw new Trouble('target', `This export was made for the target ${String(manifest.target).slice(0, 40)}, not for the ${CHIP.target}.`,
            `Export for the board: chiplm export --target ${CHIP.target}.`);
    }
    const take = async (name) => {
        const file = found.get(name);
        const want = manifest.files[name];
        if (file === undefined || !isObject(want) || !isText(want.sha256)) {
            throw new Trouble('folder', `The folder has no ${name}${file === undefined ? '' : ' of the export'}.`, EXPORT_AGAIN);
        }
        const bytes = new Uint8Array(await file.arrayBuffer());
        const hash = await sha256(bytes);
        checkHash(name, bytes, hash, want.sha256, EXPORT_AGAIN);
        return { bytes, sha256: hash };
    };
    await take('flasher.json'); // its hash
    const flasher = await jsonFile(found.get('flasher.json'), EXPORT_AGAIN);
    const isPart = (part) => isObject(part) && isText(part.path) && Number.isSafeInteger(part.offset) && part.offset >= 0;
    const builds = isObject(flasher) && Array.isArray(flasher.builds) ? flasher.builds : [];
    const build = builds.find((one) => isObject(one) && one.chipFamily === CHIP.name && isListOf(one.parts, isPart));
    if (build === undefined) {
        throw new Trouble('target', `This export has nothing for the ${CHIP.name}.`, EXPORT_AGAIN);
    }
    const model = await take(MODEL_FILE);
    checkImage(MODEL_FILE, model.bytes, EXPORT_AGAIN);
    const firmware = [];
    for (const { path, offset } of [...build.parts].sort((a, b) => a.offset - b.offset)) {
        if (path !== MODEL_FILE) {
            firmware.push({ name: path, offset, ...await take(path) });
        }
    }
    const carried = firmware.length > 0;
    return {
        title: isText(manifest.model) ? manifest.model : 'a model',
        model: { name: 'model', offset: null, ...model },
        firmware: carried ? firmware : null,
        version: carried ? checkFirmware(firmware, EXPORT_AGAIN) : '',
    };
}
