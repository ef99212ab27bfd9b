/* What the dials say, as a request; or what is wrong with them. */

const MOST_SEED = (1n << 64n) - 1n;
const MOST_TEMPERATURE = 100; // as of chiplm sample and chiplm chat

/**
 * @typedef {object} Request
 * @property {string} text
 * @property {number} tokens
 * @property {number} temperature in steps of a thousandth
 * @property {number} topK
 * @property {string} seed
 */

function inRange(text, least, most) {
    const n = Number(text);
    return /^\d+(\.\d+)?$/.test(text.trim()) && n >= least && n <= most ? n : null;
}

/**
 * Reads the dials.
 * @param {{start: string, length: string, temperature: string, topk: string, seed: string}} dials as they were typed
 * @param {{context: number, vocabulary: number}} limits
 * @returns {{request: Request} | {field: string, wrong: string}}
 */
export function requestOf(dials, { context, vocabulary }) {
    const tokens = inRange(dials.length, 1, context);
    if (tokens === null || !Number.isInteger(tokens)) {
        return { field: 'length', wrong: `The length is a whole number from 1 to ${context}, the context of this model.` };
    }
    const temperature = inRange(dials.temperature, 0, MOST_TEMPERATURE);
    if (temperature === null) {
        return { field: 'temperature', wrong: `The temperature is a number from 0 (always the likeliest token) to ${MOST_TEMPERATURE}; 0.7 is usual.` };
    }
    const topK = inRange(dials.topk, 0, vocabulary);
    if (topK === null || !Number.isInteger(topK)) {
        return { field: 'topk', wrong: `Top-k is a whole number from 0 (all tokens) to ${vocabulary}.` };
    }
    const seed = dials.seed.trim();
    if (!/^\d{1,20}$/.test(seed) || BigInt(seed) > MOST_SEED) {
        return { field: 'seed', wrong: `The seed is a whole number from 0 to ${MOST_SEED}.` };
    }
    return {
        request: { text: dials.start, tokens, temperature: Math.round(temperature * 1000) / 1000, topK, seed: BigInt(seed).toString() },
    };
}

/** A seed that nobody chose: short enough to be told to somebody. */
export function anotherSeed() {
    return String(crypto.getRandomValues(new Uint32Array(1))[0] % 1000000);
}
