/* A story as it is written: the text, the bars, the numbers. */
import { Chart } from './chart.js';
import { byId, el } from './dom.js';
import { against, count, plain, short, whole } from './format.js';
import { predictedAt, predictedMean } from './prediction.js';

const ENDS = {
    end: () => 'The model ended the story.',
    length: () => 'The length was reached.',
    context: (context) => `The context of ${whole(context)} tokens is full.`,
    stopped: () => 'Stopped.',
};

/** A token as a word can be shown in one line. @param {string} text */
const visible = (text) => text.replaceAll('\n', '↵').replaceAll(' ', ' ');

/**
 * What a story of now is made with: where it is written, and what is known there.
 * @typedef {object} Setting
 * @property {string} start
 * @property {number} tokens
 * @property {number} context
 * @property {boolean} chip whether a chip writes it, whose speed the cost model predicts
 * @property {import('./models.js').Model | null} model whose cost may become known later
 * @property {number | null} prompt tokens of the start, end-of-text among them; null: not known
 */

export class StoryView {
    #chart;
    #spans = [];
    #waiting = []; // tokens that are not shown yet
    #frame = 0;
    #decoder = new TextDecoder();
    #setting = null;
    #sum = { us: 0, bytes: 0, count: 0 };
    #promptMs = null;
    #times = [];
    #end = null; // what ended the story

    constructor() {
        this.#chart = new Chart(byId('chart'), (index) => this.#look(index));
        byId('text').addEventListener('pointerover', ({ target }) => {
            const index = this.#spans.indexOf(target);
            if (index >= 0) {
                this.#chart.pick(index);
            }
        });
        byId('text').addEventListener('pointerleave', () => this.#chart.pick(-1));
    }

    /** Starts a story. @param {Setting} setting */
    begin(setting) {
        this.#setting = setting;
        this.#spans = [];
        this.#waiting = [];
        this.#times = [];
        this.#decoder = new TextDecoder();
        this.#sum = { us: 0, bytes: 0, count: 0 };
        this.#promptMs = null;
        byId('paper').hidden = false;
        byId('times').hidden = false;
        byId('paper').classList.add('running');
        byId('text').replaceChildren(el('span', { class: 'given' }, setting.start));
        byId('end').textContent = '';
        byId('operations').hidden = true;
        byId('readline').textContent = '';
        this.#end = null;
        this.refresh();
        const room = Math.min(setting.tokens, setting.context);
        byId('chart').hidden = room < 2;
        this.#chart.clear(room, this.#line(room));
        this.#numbers();
    }

    /** The prediction of each token, for a chip; without the place in the context its mean. */
    #line(room) {
        const { chip, model, prompt } = this.#setting;
        const cost = model?.cost;
        if (!chip || !cost) {
            return [];
        }
        return Array.from({ length: room }, (_, i) => (prompt === null ? cost.cost.mean_ms : predictedAt(cost, prompt + Math.max(0, i - 1))));
    }

    /** The prompt was read. @param {number} ms */
    prompt(ms) {
        this.#promptMs = ms;
        this.#later();
    }

    /** A token came. @param {{us: number, bytes: Uint8Array}} token */
    token(token) {
        this.#waiting.push(token);
        this.#later();
    }

    /** At most once a frame, however fast tokens come. */
    #later() {
        this.#frame ||= requestAnimationFrame(() => {
            this.#frame = 0;
            this.#show();
        });
    }

    #show() {
        const added = document.createDocumentFragment();
        for (const { us, bytes } of this.#waiting) {
            const text = this.#decoder.decode(bytes, { stream: true });
            const span = el('span', { class: 'token' }, text);
            added.append(span);
            this.#chart.add(us / 1000, visible(text));
            this.#spans.push(span);
            this.#times.push(us);
            if (this.#spans.length > 1) { // the first needs no pass through the weights
                this.#sum.us += us;
                this.#sum.bytes += bytes.length;
                this.#sum.count++;
            }
        }
        this.#waiting = [];
        byId('text').append(added);
        const { cut, longest, top } = this.#chart.draw();
        byId('readline').textContent = cut === 0 ? ''
            : `${count(cut, 'token')} took longer than the ${plain(top)} ms shown: up to ${short(longest)} ms`;
        this.#numbers();
    }

    #numbers() {
        const { us, bytes, count: n } = this.#sum;
        set('read-prompt', this.#promptMs, 'ms');
        set('read-token', n > 0 ? us / n / 1000 : null, 'ms');
        set('read-speed', us > 0 ? n / us * 1e6 : null, 'a second');
        set('read-bytes', us > 0 ? bytes / us * 1e6 : null, 'bytes a second');
    }

    /**
     * The story is over.
     * @param {{count: number, ms: number, why: string, lost?: number}} end
     * @param {string} [more] a sentence on it
     * @returns {string} what to say of it
     */
    end(end, more = '') {
        this.#finish();
        this.#end = end;
        this.refresh();
        const { context } = this.#setting;
        const parts = [ENDS[end.why]?.(context) ?? '', `${count(end.count, 'token')}.`];
        if (end.lost > 0) {
            parts.push(`${count(end.lost, 'token')} did not arrive whole.`);
        }
        byId('end').textContent = [...parts, more].join(' ').trim();
        const speed = this.#sum.us > 0 ? `, ${short(this.#sum.count / this.#sum.us * 1e6)} a second` : '';
        return `${ENDS[end.why]?.(context) ?? ''} ${count(end.count, 'token')}${speed}. ${more}`.trim();
    }

    /** The story failed, or was stopped and its end is not awaited. @param {string} said */
    broke(said) {
        this.#finish();
        const none = this.#spans.length === 0; // the failure's sentence says all there is
        byId('paper').hidden = none;
        byId('times').hidden = none;
        byId('end').textContent = `${said} ${count(this.#spans.length, 'token')}.`;
    }

    #finish() {
        cancelAnimationFrame(this.#frame);
        this.#frame = 0;
        this.#show();
        const rest = this.#decoder.decode();
        if (rest !== '') {
            byId('text').append(rest);
        }
        byId('paper').classList.remove('running');
        this.#chart.close();
        byId('chart').hidden = this.#spans.length < 2; // the first token has no time of its own
    }

    /** What the cost model says, beside what was measured. */
    refresh() {
        const { model, chip, prompt } = this.#setting ?? {};
        const cost = model?.cost;
        if (!cost) {
            byId('prediction').textContent = '';
            return;
        }
        const known = this.#end !== null && chip && this.#sum.count > 0;
        const want = known ? predictedMean(cost, prompt, this.#end.count) : cost.cost.mean_ms;
        const told = `${short(want)} ms a token, ${short(1000 / want)} a second`;
        if (!chip) {
            byId('prediction').textContent = `These are times of this computer. For the chip, the cost model says ${told}.`;
        } else if (!known) {
            byId('prediction').textContent = `Cost model: ${told}.`;
        } else {
            const got = this.#sum.us / this.#sum.count / 1000;
            byId('prediction').replaceChildren('Cost model: ', el('b', {}, told), '; measured: ',
                el('b', {}, `${short(got)} ms, ${short(1000 / got)} a second`), `, ${against(got, want)}.`);
        }
    }

    /** A token is looked at, in the chart or in the text. */
    #look(index) {
        document.querySelector('.token.on')?.classList.remove('on');
        this.#spans[index]?.classList.add('on');
        if (index >= 0) {
            byId('readline').textContent = `token ${index + 1}: “${visible(this.#spans[index].textContent)}”, ${short(this.#times[index] / 1000)} ms`;
        } else {
            byId('readline').textContent = '';
        }
    }
}

function set(id, value, unit) {
    const at = byId(id);
    at.replaceChildren(value === null ? '–' : short(value), el('small', {}, value === null ? '' : ` ${unit}`));
}
