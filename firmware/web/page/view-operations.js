/* Where the time of a token goes, by operation. */
import { byId, el } from './dom.js';
import { short } from './format.js';
import { predictedOperation, wordsOf } from './prediction.js';

/**
 * @param {{name: string, us: number}[] | null} profile
 * @param {object | null} cost of models.json
 * @param {boolean} chip whether a chip was measured
 */
export function showOperations(profile, cost, chip) {
    const box = byId('operations');
    box.hidden = profile === null || profile.length === 0;
    if (box.hidden) {
        return;
    }
    const total = profile.reduce((sum, { us }) => sum + us, 0);
    const most = Math.max(...profile.map(({ us }) => us));
    const rows = [...profile].sort((a, b) => b.us - a.us).map(({ name, us }) => {
        const bar = el('i', { 'aria-hidden': 'true' });
        bar.style.setProperty('transform', `scaleX(${us / most})`);
        const predicted = predictedOperation(cost, name);
        return el('tr', {}, el('th', { scope: 'row' }, wordsOf(name)), el('td', { class: 'share' }, bar), el('td', {}, short(us)),
            el('td', {}, `${(us / total * 100).toFixed(1)} %`),
            el('td', { class: 'predicted' }, predicted === null ? '' : short(predicted)));
    });
    const sum = el('tr', { class: 'sum' }, el('th', { scope: 'row' }, 'a token'), el('td', { class: 'share' }), el('td', {}, short(total)), el('td', {}, ''),
        el('td', { class: 'predicted' }, cost === null ? '' : short(cost.cost.mean_ms * 1000)));
    box.querySelector('tbody').replaceChildren(...rows, sum);
    box.querySelector('table').classList.toggle('alone', cost === null);
    byId('operations-note').textContent = cost === null ? 'Means over the tokens of this story.'
        : `Means over the tokens of this story${chip ? '' : ', on this computer'}; the cost model’s are for the chip, over the whole `
            + 'context. It counts norms, quantising and sums by themselves; in the measurement they belong to the operation they come before.';
}
