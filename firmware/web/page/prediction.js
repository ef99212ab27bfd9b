/* What the cost model says of a token on the chip: `chiplm cost --json`, as models.json carries it. */

/** Which parts of the cost model belong to an operation of a profile. Those in no list lie between operations. */
const PARTS = {
    token_embedding: ['token_embedding, a row', 'ngram_table, a row'],
    ple_projection: ['ple_projection', 'ple_table, a row'],
    mix: ['mix of embeddings'],
    qkv: ['qkv'],
    attention: ['attention scores', 'attention softmax', 'attention mix', 'rotation'],
    attention_output: ['attention_output'],
    gate: ['gate'],
    ffn: ['up', 'gate of neurons'],
    down: ['down'],
    ple_gate: ['ple_gate', 'gelu'],
    ple_output: ['ple_output'],
    head: ['head'],
};

/** Operations of a profile in words. */
const WORDS = {
    token_embedding: 'token embedding',
    ple_projection: 'projection of per-layer embeddings',
    mix: 'mix of per-layer embeddings',
    qkv: 'queries, keys, values',
    attention: 'attention',
    attention_output: 'output of attention',
    gate: 'feed-forward, gate',
    ffn: 'feed-forward, up',
    down: 'feed-forward, down',
    router: 'choice of expert',
    ple_gate: 'per-layer embedding, gate',
    ple_mix: 'per-layer embedding, product',
    ple_output: 'per-layer embedding, output',
    x: 'sum of the layer',
    output_norm: 'last norm',
    head: 'output layer',
};

/**
 * An operation in words.
 * @param {string} name
 */
export function wordsOf(name) {
    return WORDS[name] ?? name;
}

/**
 * Microseconds that the cost model gives an operation; null for one that it has no part of its own for.
 * @param {object} cost
 * @param {string} name
 * @returns {number | null}
 */
export function predictedOperation(cost, name) {
    const names = PARTS[name];
    const parts = cost?.cost?.parts?.filter((part) => names?.includes(part.name)) ?? [];
    return parts.length === 0 ? null : parts.reduce((sum, { ms }) => sum + ms * 1000, 0);
}

/**
 * Milliseconds of a token at a position, between the three places that the cost model tells.
 * @param {object} cost
 * @param {number} position
 */
export function predictedAt(cost, position) {
    const { start_ms: start, middle_ms: middle, end_ms: end, from, to } = cost.cost;
    const half = (from + to) / 2;
    const t = Math.min(Math.max(position, from), to);
    return t <= half
        ? start + (middle - start) * (half > from ? (t - from) / (half - from) : 0)
        : middle + (end - middle) * (t - half) / (to - half);
}

/**
 * Mean milliseconds of a token over the positions that a text took; of all positions when those are not known.
 * @param {object} cost
 * @param {number | null} prompt tokens of it, end-of-text among them
 * @param {number} written tokens
 */
export function predictedMean(cost, prompt, written) {
    if (prompt === null || written < 2) {
        return cost.cost.mean_ms;
    }
    let sum = 0;
    for (let i = 0; i < written - 1; i++) { // the first token needs no pass through the weights
        sum += predictedAt(cost, prompt + i);
    }
    return sum / (written - 1);
}
