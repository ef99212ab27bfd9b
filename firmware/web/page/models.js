/* What the server of the page gives: models, firmware, and whether a virtual board runs beside it. */
import { Trouble } from './trouble.js';

/** What to do about a file that the server does not give. */
export const NO_SERVER = 'Is chiplm page still running? Start it again, and load the page anew.';

/** @param {string} name of a file of the server */
async function json(name) {
    let response = null;
    try {
        response = await fetch(name);
        if (response.ok) {
            return await response.json();
        }
    } catch {
        // is told below
    }
    throw new Trouble('fetch', `The page could not read ${name} where it came from${response && !response.ok ? ` (${response.status})` : ''}.`,
        NO_SERVER);
}

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
        return Object.assign(model, await json(`models/${encodeURIComponent(model.name)}/model.json`));
    } catch (error) {
        return Object.assign(model, model.board ? {} : { refused: error.message });
    }
}

/**
 * Reads what the server has.
 * @returns {Promise<{models: Model[], firmware: object | null, virtual: string | null}>}
 */
export async function readServer() {
    const [models, firmware, about] = await Promise.all([json('models.json'), json('firmware.json'), json('page.json')]);
    if (models.length === 0) {
        throw new Trouble('no-models', 'The program that serves this page has no model.',
            'Name one: chiplm page RUN; or connect a board.');
    }
    for (const model of models) {
        model.whole = complete(model);
    }
    return { models, firmware, virtual: about.virtual ?? null };
}
