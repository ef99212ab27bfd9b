/* What the server of the page gives: models, firmware, and whether a virtual board runs beside it. */
import { all, has, isListOf, isNumber, isObject, isSize, isText } from './shapes.js';
import { Trouble } from './trouble.js';

/** What to do about a file that the server does not give. */
export const NO_SERVER = 'Is chiplm page still running? Start it again, and load the page anew.';

/**
 * @param {string} name of a file of the server
 * @param {(value: unknown) => boolean} fits whether that is what the file holds
 */
async function json(name, fits) {
    let response = null;
    let value;
    try {
        response = await fetch(name);
        value = response.ok ? await response.json() : undefined;
    } catch {
        // is told below
    }
    if (value === undefined) {
        throw new Trouble('fetch', `The page could not read ${name} where it came from${response && !response.ok ? ` (${response.status})` : ''}.`,
            NO_SERVER);
    }
    if (!fits(value)) {
        throw new Trouble('fetch', `${name}, which the page read where it came from, is not as chiplm page makes it.`,
            'Start chiplm page again, or write the folder again with --out; then load the page anew.');
    }
    return value;
}

const orNull = (kind) => (value) => value === null || kind(value);
const isImage = (image) => isObject(image) && has(image, isText, 'image', 'sha256') && isSize(image.bytes);
const isBoards = (boards) => isObject(boards) && Object.values(boards).every(isImage);
const isDigest = (digest) => isObject(digest) && isSize(digest.n) && isText(digest.value);

function isCost(report) {
    return isObject(report) && isObject(report.cost) && has(report.cost, isNumber, 'start_ms', 'middle_ms', 'end_ms', 'mean_ms', 'from', 'to')
        && all(report.cost, (parts) => isListOf(parts, (part) => isObject(part) && isText(part.name) && isNumber(part.ms)), 'parts');
}

function isFacts(facts) {
    return isObject(facts) && isSize(facts.parameters) && has(facts, isText, 'weights', 'model_sha256')
        && all(facts, orNull((score) => isObject(score) && isNumber(score.bits_per_byte)), 'score');
}

function isModel(model) {
    return isObject(model) && has(model, isText, 'name', 'image', 'sha256') && isFacts(model.facts) && all(model, isDigest, 'digest')
        && all(model, orNull(isBoards), 'board') && all(model, orNull(isCost), 'cost') && all(model, isText, 'refused');
}

function isFirmware(firmware) {
    return isObject(firmware) && isText(firmware.chip) && all(firmware, isText, 'version')
        && isListOf(firmware.files, (file) => isObject(file) && has(file, isText, 'name', 'url', 'sha256') && has(file, isNumber, 'offset', 'bytes'));
}

const isAbout = (about) => isObject(about) && all(about, orNull(isText), 'virtual');

/**
 * A model that the server has. What goes on the chip takes the server some seconds to make: it is there when whole resolves.
 * @typedef {object} Model
 * @property {string} name
 * @property {object} facts
 * @property {string} image where it is read
 * @property {{n: number, value: string}} [digest] that the engine must give
 * @property {Record<string, {image: string, sha256: string, bytes: number}> | null} [board] by chip
 * @property {object | null} [cost] what the cost model says of it
 * @property {string} [refused] why it cannot go on the chip
 * @property {Promise<Model>} whole itself; never rejects
 */

async function complete(model) {
    try {
        return Object.assign(model, await json(`models/${encodeURIComponent(model.name)}/model.json`, isModel));
    } catch (error) {
        return Object.assign(model, model.board ? {} : { refused: error.message });
    }
}

/**
 * Reads what the server has.
 * @returns {Promise<{models: Model[], firmware: object | null, virtual: string | null}>}
 */
export async function readServer() {
    const [models, firmware, about] = await Promise.all([
        json('models.json', (list) => isListOf(list, isModel)), json('firmware.json', orNull(isFirmware)), json('page.json', isAbout),
    ]);
    for (const model of models) {
        model.whole = complete(model);
    }
    return { models, firmware, virtual: about.virtual ?? null };
}
