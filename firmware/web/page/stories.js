/* That the same seed gives the same story in all ways: what each wrote for the same wish. */

const MOST = 50; // wishes that are remembered

export class Stories {
    #written = new Map();

    /**
     * Notes a story, and compares it with those of the other ways.
     * @param {object} wish model and request, by which stories are the same
     * @param {string} way its name in a sentence
     * @param {number[]} ids
     * @returns {string} a sentence; "" when no other way wrote it
     */
    compare(wish, way, ids) {
        const key = JSON.stringify(wish);
        const before = this.#written.get(key) ?? new Map();
        const same = [];
        const other = [];
        for (const [name, those] of before) {
            if (name !== way) {
                const n = Math.min(ids.length, those.length); // one of them may have been stopped
                const at = ids.findIndex((id, i) => i < n && id !== those[i]);
                if (at < 0) {
                    same.push(name);
                } else {
                    other.push(`Other tokens than ${name} wrote, from number ${at + 1} on.`);
                }
            }
        }
        before.set(way, ids);
        this.#written.delete(key);
        this.#written.set(key, before);
        if (this.#written.size > MOST) {
            this.#written.delete(this.#written.keys().next().value);
        }
        const agree = same.length > 0 ? [`The same tokens as ${same.join(' and ')} wrote.`] : [];
        return [...agree, ...other].join(' ');
    }
}
