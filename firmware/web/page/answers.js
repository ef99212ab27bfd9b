/*
 * The answers of firmware/PROTOCOL.md, version 1: what kind a line is of, and what it says. Each reader gives null for a
 * line that is not of the protocol's form: it was cut on its way, or the firmware is wrong.
 */
import { unescape } from './escapes.js';
import { all, has, isListOf, isNumber, isObject, isSize, isText } from './shapes.js';

/**
 * The kind of a line: the letter of its answer, "!" or "{"; "" for a remark.
 * @param {string} line
 */
export function kindOf(line) {
    const c = line.charAt(0);
    if (c === '{') {
        return c;
    }
    if (c === '' || !'PTEDRVQ!'.includes(c)) {
        return '';
    }
    if (line.length === 1) {
        return c;
    }
    // Such as "Rebooting...", and the framework's log: "E (123) psram: ..."
    return line[1] === ' ' && line[2] !== '(' ? c : '';
}

/**
 * Whether a remark is that of a board that has just started.
 * @param {string} line
 */
export function isStart(line) {
    return line.startsWith('# ready') || line.startsWith('# not ready');
}

/**
 * The time of a prompt.
 * @param {string} line
 * @returns {number | null} milliseconds
 */
export function promptOf(line) {
    const m = /^P (\d{1,12}(?:\.\d{1,6})?)$/.exec(line);
    return m === null ? null : Number(m[1]);
}

/**
 * @typedef {object} Token
 * @property {number} id
 * @property {number} us since the last one; for the first, since the prompt was read
 * @property {Uint8Array} bytes which may end inside a character
 */

/**
 * A token with its bytes.
 * @param {string} line
 * @returns {Token | null}
 */
export function tokenOf(line) {
    const m = /^T (\d{1,9}) (\d{1,15}) ([^]*)$/.exec(line);
    const bytes = m === null ? null : unescape(m[3]);
    return bytes === null ? null : { id: Number(m[1]), us: Number(m[2]), bytes };
}

/**
 * The end of a text.
 * @param {string} line
 * @returns {{count: number, ms: number, why: string} | null}
 */
export function endOf(line) {
    const m = /^E (\d{1,9}) (\d{1,12}(?:\.\d{1,6})?) (end|length|context|stopped)$/.exec(line);
    return m === null ? null : { count: Number(m[1]), ms: Number(m[2]), why: m[3] };
}

/**
 * A digest.
 * @param {string} line
 * @param {number} n that was asked for
 * @param {number} mode that was asked for
 * @returns {string | null} 0x and 16 digits
 */
export function digestOf(line, n, mode) {
    const m = /^D (\d{1,9}) (\d) (0x[0-9a-f]{16})$/.exec(line);
    return m !== null && Number(m[1]) === n && Number(m[2]) === mode ? m[3] : null;
}

/**
 * A refusal.
 * @param {string} line
 * @returns {{code: string, message: string} | null}
 */
export function refusalOf(line) {
    const m = /^! ([a-z0-9-]{1,40}) (.+)$/.exec(line);
    return m === null ? null : { code: m[1], message: m[2] };
}

function parsed(line) {
    try {
        return line.startsWith('{') ? JSON.parse(line) : null;
    } catch {
        return null;
    }
}

function isModel(model) {
    return isObject(model) && isText(model.model_sha256) && isSize(model.vocab_size) && isSize(model.context_length)
        && all(model, isText, 'tokenizer_sha256', 'image_crc32') && all(model, isNumber, 'image_bytes');
}

function isMemory(memory) {
    return isObject(memory) && isText(memory.name) && has(memory, isNumber, 'total', 'free', 'buffers', 'weights');
}

/**
 * What a board says of itself. A newer one may say more.
 * @param {string} line
 * @returns {{error: {code: string, message: string} | null, model: object | null, memories: object[]} | null} with all else it says
 */
export function infoOf(line) {
    const board = parsed(line);
    if (board === null) {
        return null;
    }
    const { error = null, model = null, memories = [] } = board;
    const fits = (error === null ? model !== null : isObject(error) && /^[a-z0-9-]{1,40}$/.test(error.code) && isText(error.message))
        && (model === null || isModel(model)) && isListOf(memories, isMemory)
        && all(board, isText, 'firmware', 'target', 'chip', 'psram_mode') && all(board, isNumber, 'cores', 'clock_mhz', 'psram_mhz', 'psram_bytes');
    return fits ? { ...board, error, model, memories } : null;
}

/**
 * Where the time of a token went.
 * @param {string} line
 * @returns {{name: string, us: number}[] | null}
 */
export function profileOf(line) {
    const operations = parsed(line)?.profile;
    const fits = isListOf(operations, (one) => isObject(one) && isText(one.operation) && isNumber(one.us));
    return fits ? operations.map(({ operation, us }) => ({ name: operation, us })) : null;
}

/**
 * Whether a line can only be the protocol's.
 * @param {string} line
 */
export function isOurs(line) {
    return [promptOf, tokenOf, endOf, refusalOf].some((read) => read(line) !== null) || /^D \d{1,9} \d 0x[0-9a-f]{16}$/.test(line);
}
