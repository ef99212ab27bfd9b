/* What a person typed, kept for a page that is loaded anew. */

const KEY = 'chiplm.settings';
const FIELDS = ['start', 'length', 'temperature', 'topk', 'seed', 'address'];

/**
 * Fills the fields with what was kept.
 * @param {Storage} storage
 * @returns {string | undefined} the way that was chosen last
 */
export function restoreSettings(storage) {
    try {
        const kept = JSON.parse(storage.getItem(KEY) ?? '{}');
        for (const id of FIELDS) {
            if (typeof kept[id] === 'string') {
                document.getElementById(id).value = kept[id];
            }
        }
        return kept.way;
    } catch {
        return undefined; // it was not ours
    }
}

/**
 * @param {Storage} storage
 * @param {string} way
 */
export function keepSettings(storage, way) {
    const kept = { way };
    for (const id of FIELDS) {
        kept[id] = document.getElementById(id).value;
    }
    storage.setItem(KEY, JSON.stringify(kept));
}
