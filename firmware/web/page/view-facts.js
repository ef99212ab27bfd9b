/* What the model and the board are, with their hashes, and whether the bits are right. */
import { byId, el } from './dom.js';
import { bytes, count, plain, whole } from './format.js';

/** A hash, all of it. */
function hash(text) {
    return text ? el('code', { class: 'hash' }, text) : '–';
}

function entry(name, ...value) {
    return [el('dt', {}, name), el('dd', {}, ...value)];
}

function modelFacts(way) {
    const { info } = way.source;
    if (info.sha256 === undefined) {
        return entry('Model', 'none that the board takes');
    }
    const facts = way.model?.facts;
    const forBoard = info.board && Object.values(way.model?.board ?? {}).some(({ sha256 }) => sha256 !== way.model.sha256);
    return [
        ...entry('Model', way.model?.name ?? 'not one of the released models'),
        ...(facts ? entry('Parameters', `${whole(facts.parameters)}, ${facts.weights}`) : []),
        ...(facts?.score ? entry('Quality', `${facts.score.bits_per_byte.toFixed(4)} bits per byte of held-out stories`) : []),
        ...entry('Vocabulary', count(info.vocab_size, 'token')),
        ...entry('Context', count(info.context_length, 'token')),
        ...entry('SHA-256 of the weights', hash(info.sha256)),
        ...entry('SHA-256 of the tokenizer', hash(info.tokenizer_sha256)),
        ...(info.image_sha256 ? entry('SHA-256 of the image', hash(info.image_sha256)) : []),
        ...(info.image_crc32 ? entry('Image', `${whole(info.image_bytes)} bytes, CRC-32 `, el('code', {}, info.image_crc32), forBoard ? ', laid out for the board' : '') : []),
    ];
}

function boardFacts({ board }) {
    const psram = board.psram_bytes > 0 ? `${plain(board.psram_bytes / 2 ** 20)} MB, ${board.psram_mode} at ${board.psram_mhz} MHz`
        : `none answers in ${board.psram_mode} mode`;
    const memories = (board.memories ?? []).filter(({ total }) => total > 0);
    return [
        ...entry('Chip', `${board.chip}, ${count(board.cores, 'core')} at ${board.clock_mhz} MHz`),
        ...entry('Firmware', String(board.firmware)),
        ...entry('PSRAM', psram),
        ...memories.flatMap(({ name, weights, buffers, free }) => entry(`${name.toUpperCase()} holds`,
            `${bytes(weights)} of weights, ${bytes(buffers)} of buffers, ${bytes(free)} free`)),
    ];
}

function proofText({ state, n, value, by }) {
    const of = `Digest of ${count(n, 'token')}`;
    switch (state) {
    case 'running': return [`${of}: computing …`];
    case 'failed': return [`${of}: it could not be computed.`];
    case 'alone': return [`${of}. Nothing here to compare it with.`];
    case 'equal': return [`${of}: equal to ${by}, to the bit.`];
    default: return [`${of}: not equal to ${by}. Do not trust what it writes.`, value];
    }
}

/** @param {import('./way.js').Way} way */
export function showFacts(way) {
    const { source, proof } = way;
    byId('facts').replaceChildren(...(source === null ? entry('Model', way.busy ? `${way.caption} …` : 'nothing runs here yet')
        : [...modelFacts(way), ...(source.info.board ? boardFacts(source.info) : [])]));
    const box = byId('proof');
    box.dataset.state = proof?.state ?? 'none';
    if (proof === null) {
        box.replaceChildren();
        return;
    }
    const [said] = proofText(proof);
    const values = [];
    if (proof.value) {
        values.push(el('code', {}, proof.value));
    }
    if (proof.state === 'differs') {
        values.push(el('span', {}, ' should be '), el('code', {}, proof.want));
    }
    box.replaceChildren(el('p', {}, el('i', { class: 'lamp', 'aria-hidden': 'true' }), said), el('p', { class: 'digest' }, ...values));
}
