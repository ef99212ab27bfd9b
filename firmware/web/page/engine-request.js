/*
 * What a request to the engine may hold: the ranges of firmware/PROTOCOL.md, each with the sentence for a value outside.
 */
import { Trouble } from './trouble.js';

const MOST_TOKENS = 1000000; // of a request
const MOST_TEMPERATURE = 1000;
const MOST_SEED = 2n ** 64n - 1n;
const MOST_TOP_K = 2 ** 32 - 1;

/** Bytes that a text to encode has at most. */
export const MOST_TEXT = 1 << 20;

/** The ways to compute a digest: fastest on both cores, on one, and plain C. Without a second core the first two are one. */
export const MODES = 3;

/** @param {string} name @param {unknown} value @param {string} limits */
function outside(name, value, limits) {
    const shown = String(value);
    return new Trouble('range', `${name} is ${shown.length > 24 ? `${shown.slice(0, 24)}…` : shown}, it must be ${limits}.`,
        'Choose a value within those limits.');
}

/** @param {string} name @param {unknown} value @param {number} least @param {number} most @returns {number} */
function whole(name, value, least, most) {
    if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
        throw outside(name, value, `a whole number from ${least} to ${most}`);
    }
    return value;
}

/** @param {unknown} value @returns {number} thousandths */
function temperatureOf(value) {
    const thousandths = typeof value === 'number' ? Math.round(value * 1000) : NaN;
    if (!(thousandths >= 0 && thousandths <= MOST_TEMPERATURE * 1000) || Math.abs(value * 1000 - thousandths) > 1e-6) {
        throw outside('The temperature', value, `a number from 0 to ${MOST_TEMPERATURE} in steps of 0.001`);
    }
    return thousandths;
}

/** @param {unknown} value @returns {bigint} */
function seedOf(value) {
    let seed = -1n;
    if (typeof value === 'bigint' || Number.isSafeInteger(value)) {
        seed = BigInt(value);
    } else if (typeof value === 'string' && /^[0-9]{1,30}$/.test(value)) {
        seed = BigInt(value);
    }
    if (seed < 0n || seed > MOST_SEED) {
        throw outside('The seed', value, `a whole number from 0 to ${MOST_SEED}`);
    }
    return seed;
}

/** @param {number} length @param {number} context */
function tooLong(length, context) {
    return new Trouble('context', `The prompt has ${length} tokens, the context of this model ${context}.`, 'Shorten the prompt.');
}

/**
 * Refuses a text that is none, or too long to encode.
 * @param {unknown} text
 * @returns {Uint8Array} its bytes
 */
export function textOf(text) {
    if (typeof text !== 'string' && !(text instanceof Uint8Array)) {
        throw new Trouble('range', 'The text is neither a string nor bytes.', 'Pass the one or the other.');
    }
    const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
    if (bytes.length > MOST_TEXT) {
        throw new Trouble('too-long', `The text has ${bytes.length} bytes, of which this page encodes ${MOST_TEXT}.`,
            'Use a shorter text.');
    }
    return bytes;
}

/**
 * The prompt of a request: the ids that it gives, or those of its text behind end-of-text.
 * @param {{text?: unknown, ids?: unknown}} request
 * @param {{vocab_size: number, context_length: number, end_of_text: number}} info
 * @param {(bytes: Uint8Array) => Int32Array} encode
 * @returns {ArrayLike<number>}
 */
function promptOf({ text, ids }, info, encode) {
    if ((text === undefined) === (ids === undefined)) {
        throw new Trouble('range', 'A request has either a text or ids.', 'Give one of them.');
    }
    if (ids === undefined) {
        const encoded = encode(textOf(text));
        if (encoded.length >= info.context_length) {
            throw tooLong(encoded.length + 1, info.context_length);
        }
        return [info.end_of_text, ...encoded];
    }
    if (!Array.isArray(ids) && !(ids instanceof Int32Array)) {
        throw new Trouble('range', 'The ids are no list of numbers.', 'Pass an array, or an Int32Array.');
    }
    whole('The number of ids', ids.length, 1, Infinity);
    if (ids.length > info.context_length) {
        throw tooLong(ids.length, info.context_length);
    }
    for (const id of ids) {
        if (!Number.isInteger(id) || id < 0 || id >= info.vocab_size) {
            throw new Trouble('id', `Id ${id} is outside the vocabulary of ${info.vocab_size}.`,
                'Encode the text with the tokenizer of this model.');
        }
    }
    return ids;
}

/**
 * @typedef {object} Checked a request whose values are all in range
 * @property {ArrayLike<number>} prompt
 * @property {number} tokens
 * @property {number} thousandths of the temperature
 * @property {number} topK
 * @property {bigint} seed
 * @property {boolean} profile
 */

/**
 * Checks a request.
 * @param {object} request as [Engine.generate] takes it
 * @param {{vocab_size: number, context_length: number, end_of_text: number}} info
 * @param {(bytes: Uint8Array) => Int32Array} encode
 * @returns {Checked}
 */
export function checked(request, info, encode) {
    const { tokens, temperature = 0, topK = 0, seed = 0n, profile = false } = request;
    return {
        tokens: whole('The number of tokens', tokens, 0, MOST_TOKENS),
        thousandths: temperatureOf(temperature),
        topK: whole('Top-k', topK, 0, MOST_TOP_K),
        seed: seedOf(seed),
        profile: profile === true,
        prompt: promptOf(request, info, encode),
    };
}

/**
 * Checks the wish for a digest.
 * @param {unknown} n tokens
 * @param {unknown} mode
 * @param {number} context
 */
export function checkDigest(n, mode, context) {
    whole('The number of tokens', n, 1, context);
    whole('The mode', mode, 0, MODES - 1);
}
