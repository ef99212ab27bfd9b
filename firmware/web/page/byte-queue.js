/** Bytes that arrive by themselves, for somebody who reads when he likes. */
export class ByteQueue {
    #parts = [];
    #over = false;
    #error = null;
    #wake = null;

    /** @param {Uint8Array} bytes */
    push(bytes) {
        this.#parts.push(bytes);
        this.#wake?.();
    }

    /**
     * No more will arrive.
     * @param {unknown} [error] why, if it is a failure; what arrived before is read first
     */
    end(error = null) {
        if (!this.#over) {
            this.#over = true;
            this.#error = error;
            this.#wake?.();
        }
    }

    /**
     * The next bytes; null at the end. One reader at a time.
     * @returns {Promise<Uint8Array | null>}
     */
    async read() {
        while (this.#parts.length === 0 && !this.#over) {
            await new Promise((resolve) => { this.#wake = resolve; });
            this.#wake = null;
        }
        if (this.#parts.length > 0) {
            return this.#parts.shift();
        }
        if (this.#error !== null) {
            throw this.#error;
        }
        return null;
    }
}
