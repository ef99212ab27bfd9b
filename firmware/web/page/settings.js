/* What a person typed, kept for a page that is loaded anew. */

const KEY = 'chiplm.settings';
const FIELDS = ['start', 'length', 'temperature', 'topk', 'seed', 'address', 'model'];
const CHECKS = ['profile'];

/**
 * Fills the fields with what was kept.
 * @param {Storage} storage
 * @returns {string | undefined} the way that was chosen last
 */
export function restoreSettings(storage) {
    try {
        const kept = JSON.parse(storage.getItem(KEY) ?? '{}');
        for (const id of FIELDS) {
            const field = document.getElementById(id);
            const there = field.options === undefined || [...field.options].some(({ value }) => value === kept[id]); // the server's models may be others
            if (typeof kept[id] === 'string' && there) {
                field.value = kept[id];
            }
        }
        for (const id of CHECKS) {
            if (typeof kept[id] === 'boolean') {
                document.getElementById(id).checked = kept[id];
            }
        }
        return kept.way;
    } catch {
        return undefined; // it was not ours
    }
}

/**
 * Keeps a text, if there is room for it.
 * @param {Storage} storage
 * @param {string} key
 * @param {string} text
 * @returns {boolean} whether there was
 */
export function keep(storage, key, text) {
    try {
        storage.setItem(key, text);
        return true;
    } catch {
        return false; // browsers give a page some megabytes
    }
}

/**
 * Keeps all that was typed; without the start of the story, if that is too long.
 * @param {Storage} storage
 * @param {string} way
 */
export function keepSettings(storage, way) {
    const kept = { way };
    for (const id of FIELDS) {
        kept[id] = document.getElementById(id).value;
    }
    for (const id of CHECKS) {
        kept[id] = document.getElementById(id).checked;
    }
    keep(storage, KEY, JSON.stringify(kept)) || keep(storage, KEY, JSON.stringify({ ...kept, start: undefined }));
}
