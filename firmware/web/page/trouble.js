/**
 * A failure that the page can show: what happened, and what to do about it. Both are whole sentences.
 */
export class Trouble extends Error {
    /**
     * @param {string} code names the kind, such as "gone"; tests and views go by it
     * @param {string} what what happened
     * @param {string} todo what to do now
     * @param {unknown} [cause] the error underneath
     */
    constructor(code, what, todo, cause) {
        super(what, cause === undefined ? undefined : { cause });
        this.name = 'Trouble';
        this.code = code;
        this.todo = todo;
    }

    /** Both sentences as one text. */
    get sentence() {
        return this.todo === '' ? this.message : `${this.message} ${this.todo}`;
    }
}

/**
 * Makes a Trouble of anything that was thrown; one that is a Trouble already stays.
 * @param {unknown} error
 * @returns {Trouble}
 */
export function troubleOf(error) {
    if (error instanceof Trouble) {
        return error;
    }
    const text = error instanceof Error ? error.message : String(error);
    return new Trouble('unexpected', `Something went wrong that the page has no sentence for: ${text}`,
        'Load the page anew; if it happens again, please report it with this text.', error);
}

/**
 * Whether an error only says that somebody pressed Stop.
 * @param {unknown} error
 */
export function isStop(error) {
    return error instanceof Error && error.name === 'AbortError';
}
