/* The desk: the story that is to be written, and the way that writes it. */
import { byId } from './dom.js';
import { anotherSeed, requestOf } from './request.js';
import { Stories } from './stories.js';
import { troubleOf } from './trouble.js';
import { showFacts } from './view-facts.js';
import { showOperations } from './view-operations.js';
import { StoryView } from './view-story.js';
import { showTrouble } from './view-trouble.js';

/** The desk: which way is chosen, and what is being written. */
export class Desk {
    #ways;
    #way;
    #story = new StoryView();
    #stories = new Stories();
    #say;
    #operations = null; // of the last story: what showOperations takes
    #fitted = null; // the source that the dials were fitted to
    #wishes = new Map(); // by dial: what was asked for, and what a smaller model made of it
    #writing = null; // AbortController of the story that is being written

    /**
     * @param {import('./way.js').Way[]} ways
     * @param {(text: string) => void} say tells a screen reader
     */
    constructor(ways, say) {
        this.#say = say;
        this.#ways = new Map(ways.map((way) => [way.id, way]));
        for (const way of ways) {
            way.others = ways.filter((other) => other !== way);
            way.addEventListener('change', () => this.#changed(way));
            byId(`tab-${way.id}`).addEventListener('click', () => this.choose(way.id));
        }
        document.querySelector('.ways').addEventListener('keydown', (event) => this.#arrow(event));
        byId('write-form').addEventListener('submit', (event) => {
            event.preventDefault();
            this.write();
        });
        byId('start').addEventListener('keydown', (event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                this.write();
            }
        });
        byId('stop').addEventListener('click', () => this.stop());
        document.addEventListener('keydown', (event) => event.key === 'Escape' && this.stop());
        byId('dice').addEventListener('click', () => { byId('seed').value = anotherSeed(); });
    }

    /** @param {string} id of a way */
    choose(id) {
        if (this.#way?.id !== id) {
            this.stop();
        }
        this.#way = this.#ways.get(id) ?? this.#ways.get('browser');
        for (const way of this.#ways.values()) {
            const chosen = way === this.#way;
            const tab = byId(`tab-${way.id}`);
            tab.setAttribute('aria-selected', String(chosen));
            tab.tabIndex = chosen ? 0 : -1;
            byId(`panel-${way.id}`).hidden = !chosen;
        }
        this.#changed(this.#way);
        this.#way.dispatchEvent(new Event('chosen'));
    }

    /** The way that is chosen; undefined while none is yet. @returns {string | undefined} */
    get chosen() {
        return this.#way?.id;
    }

    #arrow(event) {
        const ids = [...this.#ways.keys()];
        const at = ids.indexOf(this.#way.id);
        const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: ids.length - 1 }[event.key];
        if (to !== undefined) {
            event.preventDefault();
            const id = ids[(to + ids.length) % ids.length];
            this.choose(id);
            byId(`tab-${id}`).focus();
        }
    }

    // ------------------------------------------------------------------------------------------------------ what is shown

    #changed(way) {
        const state = byId(`state-${way.id}`);
        state.textContent = way.caption;
        byId(`tab-${way.id}`).dataset.state = way.ready ? 'ready' : way.trouble ? 'trouble' : way.busy ? 'busy' : 'idle';
        if (way !== this.#way) {
            return;
        }
        showFacts(way);
        showTrouble(way.trouble);
        this.#limits(way);
        const writing = this.#writing !== null;
        byId('write').hidden = writing;
        byId('write').disabled = !way.ready;
        byId('stop').hidden = !writing;
        byId('hint').textContent = writing || way.ready ? '' : way.busy ? 'A moment …'
            : way.id === 'browser' ? 'Nothing runs in this browser.' : way.source === null ? 'Connect a board first.' : 'The board is not ready.';
    }

    /** The dials of a model that is new at the desk go as far as it does. What a person types after that is left alone. */
    #limits({ source }) {
        if (source?.info.context_length && source !== this.#fitted) {
            this.#fitted = source;
            this.#fit('length', source.info.context_length);
            this.#fit('topk', source.info.vocab_size);
        }
    }

    /** Lowers a dial to what a model takes; a larger model, later, gets what was asked for. */
    #fit(id, most) {
        const dial = byId(id);
        const before = this.#wishes.get(id);
        const wish = before?.got === dial.value ? before.wish : dial.value;
        const got = Number(wish) > most ? String(most) : wish;
        this.#wishes.set(id, { wish, got });
        dial.max = most;
        dial.value = got;
    }

    // ------------------------------------------------------------------------------------------------------------ a story

    #request(info) {
        const dials = Object.fromEntries(['start', 'length', 'temperature', 'topk', 'seed'].map((id) => [id, byId(id).value]));
        const read = requestOf(dials, { context: info.context_length, vocabulary: info.vocab_size });
        for (const id of Object.keys(dials)) {
            if (read.field === id) {
                byId(id).setAttribute('aria-invalid', 'true');
            } else {
                byId(id).removeAttribute('aria-invalid');
            }
        }
        if (read.wrong !== undefined) {
            byId('hint').textContent = read.wrong;
            this.#say(read.wrong);
            byId(read.field).focus();
            return null;
        }
        return read.request;
    }

    /** Tokens of a start, end-of-text among them, by the engine in this browser; null when it has another tokenizer. */
    async #promptTokens(way, text) {
        const engine = this.#ways.get('browser').source;
        if (engine === null || engine.info.tokenizer_sha256 !== way.source.info.tokenizer_sha256) {
            return null;
        }
        return engine.encode(text).then(({ length }) => length + 1, () => null);
    }

    /** Lets the chosen way write. */
    async write() {
        const way = this.#way;
        const { source } = way;
        if (this.#writing !== null || !way.ready) {
            return;
        }
        const request = this.#request(source.info);
        if (request === null) {
            return;
        }
        const writing = new AbortController();
        this.#writing = writing;
        way.pauseProof();
        way.set({ trouble: null });
        byId('stop').focus();
        this.#say('Writing.');
        const chip = (source.info.board?.target ?? 'host') !== 'host';
        const profile = byId('profile').checked;
        const prompt = await this.#promptTokens(way, request.text);
        this.#operations = null;
        this.#story.begin({
            start: request.text, tokens: request.tokens, context: source.info.context_length, chip, model: way.model, prompt,
        });
        const ids = [];
        try {
            const end = await source.generate({
                ...request, profile, signal: writing.signal,
                onPrompt: (ms) => this.#story.prompt(ms),
                onToken: (token) => {
                    if (!writing.signal.aborted) { // what comes after Stop is not shown
                        ids.push(token.id);
                        this.#story.token(token);
                    }
                },
            });
            const why = writing.signal.aborted ? 'stopped' : end.why;
            const same = (end.lost ?? 0) > 0 ? '' : this.#stories.compare({ sha256: source.info.sha256, ...request, tokens: 0 }, way.name, ids);
            this.#say(this.#story.end({ ...end, why, count: why === 'stopped' ? ids.length : end.count }, same));
            if (profile && end.count > 1) {
                await this.#profile(way, source, chip);
            }
        } catch (error) {
            this.#story.broke('It ended early.');
            this.#failed(way, source, error);
        } finally {
            this.#writing = null;
            const focused = document.activeElement === byId('stop') || document.activeElement === document.body;
            this.#changed(this.#way);
            if (focused) {
                byId('write').focus();
            }
            way.prove();
        }
    }

    /** Asks where the time of a story went. The story is whole without. */
    async #profile(way, source, chip) {
        try {
            this.#operations = [await source.profile(), way.model, chip];
            this.refresh();
        } catch (error) {
            this.#failed(way, source, error);
        }
    }

    /** Tells what failed; not of a source that is let go of: whoever did that knows, or has told it. */
    #failed(way, source, error) {
        if (way.source === source) {
            way.set({ trouble: troubleOf(error) });
        }
    }

    /** Shows what became known of a model later. */
    refresh() {
        this.#story.refresh();
        showFacts(this.#way);
        if (this.#operations !== null) {
            const [profile, model, chip] = this.#operations;
            showOperations(profile, model?.cost ?? null, chip);
        }
    }

    /** Stops the story, at once. */
    stop() {
        this.#writing?.abort();
    }
}
