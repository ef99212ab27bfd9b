/*
 * The failures of the engine, and their way between a worker and the page.
 */

/**
 * An error that the page can show: what happened, and what to do about it.
 * @param {string} code names the kind
 * @param {string} what whole sentences
 * @param {string} [todo] whole sentences; empty where the first say it
 * @returns {Error & {code: string, todo: string}}
 */
export function trouble(code, what, todo = '') {
    return Object.assign(new Error(what), { name: 'Trouble', code, todo });
}

/**
 * What a worker posts of an error. One without a code is a fault in the engine or in the page.
 * @param {unknown} error
 * @returns {{code: string, what: string, todo: string}}
 */
export function posted(error) {
    if (typeof error?.code === 'string' && typeof error.todo === 'string') {
        return { code: error.code, what: error.message, todo: error.todo };
    }
    return {
        code: 'crash',
        what: `The engine in this page stopped by a fault of its own: ${error?.message ?? error}.`,
        todo: 'Load the page anew; if it happens again, please report it with this text.',
    };
}
