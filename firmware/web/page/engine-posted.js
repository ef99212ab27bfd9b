/*
 * The way of a failure from a worker to the page: errors lose their class and their fields when they are posted.
 */
import { Trouble } from './trouble.js';

/**
 * What a worker posts of an error. One that is no Trouble is a fault in the engine or in the page.
 * @param {unknown} error
 * @returns {{code: string, what: string, todo: string}}
 */
export function posted(error) {
    const { code, message, todo } = error instanceof Trouble ? error : new Trouble('crash',
        `The engine in this page stopped by a fault of its own: ${error?.message ?? error}.`,
        'Load the page anew; if it happens again, please report it with this text.');
    return { code, what: message, todo };
}

/**
 * The failure that was posted.
 * @param {{code: string, what: string, todo: string}} failure
 * @returns {Trouble}
 */
export function received({ code, what, todo }) {
    return new Trouble(code, what, todo);
}
