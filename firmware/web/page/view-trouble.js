/* The failure that is shown. */
import { byId, el } from './dom.js';

/** @param {import('./trouble.js').Trouble | null} trouble */
export function showTrouble(trouble) {
    const box = byId('trouble');
    const text = trouble?.sentence ?? '';
    if (box.dataset.text !== text) { // else it would be read again
        box.dataset.text = text;
        box.dataset.code = trouble?.code ?? '';
        box.replaceChildren(...(trouble ? [el('p', {}, el('b', {}, trouble.message), ' ', trouble.todo)] : []));
    }
    box.hidden = trouble === null;
}
