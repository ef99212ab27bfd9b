/*
 * A bar for the time of every token. The bars are one drawing in units of tokens and milliseconds, so that a new scale is
 * one attribute; over it lies a slider, by which a token is found with pointer or keys.
 */
import { el, svg } from './dom.js';
import { plain, short } from './format.js';

const ROOM = 1.15; // of the scale, over what it is made for
const FAR = 2.5; // times the median: a bar that is longer is cut, so that it does not hide the others
const FEW = 0.1; // of the bars, at most, are cut: where many are long, they are what there is to see

/**
 * The next number of 1, 2, 2.5 or 5 times a power of ten.
 * @param {number} x
 */
export function nice(x) {
    const power = 10 ** Math.floor(Math.log10(x));
    const step = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((n) => n * power >= x * (1 - 1e-9));
    return Number((step * power).toPrecision(2));
}

/**
 * The top of the scale for times. The first token counts for nothing: it needs no pass through the weights.
 * @param {number[]} times milliseconds
 * @param {number} [least] that has to be in it
 * @returns {{top: number, cut: number, longest: number}} cut: how many are longer than the scale
 */
export function scaleOf(times, least = 0) {
    const later = times.length > 1 ? times.slice(1) : times;
    if (later.length === 0) {
        return { top: nice(Math.max(least * ROOM, 1)), cut: 0, longest: 0 };
    }
    const sorted = Float64Array.from(later).sort();
    const few = Math.max(1, Math.floor(FEW * sorted.length));
    const far = Math.max(FAR * sorted[sorted.length >> 1], sorted[Math.max(0, sorted.length - 1 - few)]);
    let high = least;
    for (const time of sorted) {
        if (time <= far) {
            high = Math.max(high, time);
        }
    }
    const top = nice(Math.max(high * ROOM, 0.01));
    const longest = sorted[sorted.length - 1];
    return { top, cut: sorted.filter((time) => time > top).length, longest };
}

/** The drawing. It is told of tokens as they come, and draws them when asked to. */
export class Chart {
    #times = [];
    #names = [];
    #drawn = 0;
    #cut = 0; // bars that were longer than the scale when it was drawn last
    #on = -1;
    #prediction = [];

    /**
     * @param {HTMLElement} root
     * @param {(index: number) => void} onPick is told which token is looked at; -1: none
     */
    constructor(root, onPick) {
        this.onPick = onPick;
        this.bars = svg('g');
        this.line = svg('polyline', { class: 'predicted', fill: 'none' });
        this.scale = svg('g', {}, this.bars, this.line);
        this.drawing = svg('svg', { preserveAspectRatio: 'none', 'aria-hidden': 'true' }, this.scale);
        this.top = el('span', { class: 'tick high', 'aria-hidden': 'true' });
        this.middle = el('span', { class: 'tick half', 'aria-hidden': 'true' });
        this.end = el('span', { class: 'tick last', 'aria-hidden': 'true' });
        this.slider = el('div', { class: 'slider', role: 'slider', tabindex: 0, 'aria-label': 'A token and its time', 'aria-valuemin': 1 });
        root.replaceChildren(el('div', { class: 'plot' }, this.drawing, this.slider), this.top, this.middle,
            el('span', { class: 'tick first', 'aria-hidden': 'true' }, '1'), this.end);
        this.slider.addEventListener('pointermove', (event) => this.#point(event));
        this.slider.addEventListener('pointerdown', (event) => this.#point(event));
        this.slider.addEventListener('pointerleave', () => this.pick(-1));
        this.slider.addEventListener('keydown', (event) => this.#key(event));
        this.clear(1);
    }

    /**
     * Starts anew.
     * @param {number} room tokens that may come
     * @param {number[]} [prediction] milliseconds of each token; drawn as a line
     */
    clear(room, prediction = []) {
        this.#times = [];
        this.#names = [];
        this.#drawn = 0;
        this.#cut = 0;
        this.#on = -1;
        this.#prediction = prediction;
        this.room = Math.max(1, room);
        this.bars.replaceChildren();
        this.line.setAttribute('points', prediction.map((ms, i) => `${i + 0.5},${ms}`).join(' '));
        this.#value();
        this.draw();
    }

    /**
     * One more token.
     * @param {number} ms
     * @param {string} name its text
     */
    add(ms, name) {
        this.#times.push(ms);
        this.#names.push(name);
    }

    /** Takes the room that was not needed away. */
    close() {
        this.room = Math.max(1, this.#times.length);
        this.draw();
    }

    /** Draws what came. @returns {{top: number, cut: number, longest: number}} */
    draw() {
        for (; this.#drawn < this.#times.length; this.#drawn++) {
            this.bars.append(svg('rect', { x: this.#drawn + 0.12, y: 0, width: 0.76, height: this.#times[this.#drawn] }));
        }
        const scale = scaleOf(this.#times, this.#prediction.length > 0 ? Math.max(...this.#prediction.slice(0, this.room)) : 0);
        this.drawing.setAttribute('viewBox', `0 0 ${this.room} 100`);
        this.scale.setAttribute('transform', `matrix(1 0 0 ${-100 / scale.top} 0 100)`);
        if (scale.cut > 0 || this.#cut > 0) { // what was cut on a shorter scale may not be now
            this.#cut = scale.cut;
            for (const [i, bar] of [...this.bars.children].entries()) {
                bar.classList.toggle('cut', this.#times[i] > scale.top);
            }
        }
        this.top.textContent = `${plain(scale.top)} ms`;
        this.middle.textContent = plain(scale.top / 2);
        this.end.textContent = String(this.room);
        this.slider.setAttribute('aria-valuemax', String(Math.max(1, this.#times.length)));
        return scale;
    }

    /** Shows a token as the one that is looked at. @param {number} index */
    pick(index) {
        this.bars.children[this.#on]?.classList.remove('on');
        this.#on = index < this.#times.length ? index : -1;
        this.bars.children[this.#on]?.classList.add('on');
        this.#value();
        this.onPick(this.#on);
    }

    #value() {
        const i = this.#on;
        this.slider.setAttribute('aria-valuenow', String(Math.max(1, i + 1)));
        this.slider.setAttribute('aria-valuetext', i < 0 ? 'no token chosen'
            : `token ${i + 1}, “${this.#names[i]}”, ${short(this.#times[i])} milliseconds`);
    }

    #point(event) {
        const { left, width } = this.slider.getBoundingClientRect();
        const index = Math.floor((event.clientX - left) / width * this.room);
        this.pick(index >= 0 && index < this.#times.length ? index : -1);
    }

    #key(event) {
        const last = this.#times.length - 1;
        const to = {
            ArrowLeft: this.#on - 1, ArrowDown: this.#on - 1, ArrowRight: this.#on + 1, ArrowUp: this.#on + 1,
            PageDown: this.#on - 10, PageUp: this.#on + 10, Home: 0, End: last,
        }[event.key];
        if (to !== undefined && last >= 0) {
            event.preventDefault();
            this.pick(Math.min(last, Math.max(0, to)));
        }
    }
}
