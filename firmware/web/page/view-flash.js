/* The form that flashes a board, and how far it is. */
import { byId, el, setMeter } from './dom.js';
import { address, bytes, left, whole } from './format.js';
import { CHIP, folderLoad, releasedLoad } from './loads.js';
import { Trouble, troubleOf } from './trouble.js';

const STEPS = {
    load: 'Reading the files',
    connect: 'Asking the board for its boot loader',
    compare: 'Comparing what the board holds',
    write: 'Writing',
    verify: 'Comparing what was written',
    restart: 'Starting the board',
    'connect-again': 'Waiting for the board',
};
const SETTLE = 1.5; // seconds before a rate is worth telling

/** What the form needs of the page: way, models, firmware, say (to a screen reader) and show (a trouble). */
export class FlashView {
    #way;
    #models;
    #firmware;
    #say;
    #folder = null; // Promise of the load of a folder
    #begun = 0;
    #quarter = 0;

    /**
     * @param {object} options
     * @param {import('./way-board.js').BoardWay} options.way
     * @param {object[]} options.models
     * @param {object | null} options.firmware
     * @param {(text: string) => void} options.say
     */
    constructor({ way, models, firmware, say }) {
        this.#way = way;
        this.#models = models;
        this.#firmware = firmware;
        this.#say = say;
        this.#options();
        byId('open-flash').addEventListener('click', () => this.open(byId('flash').hidden));
        byId('flash-close').addEventListener('click', () => this.open(false));
        byId('flash-stop').addEventListener('click', () => way.flashing?.abort());
        byId('flash-folder').addEventListener('change', ({ target }) => this.#take([...target.files]));
        byId('flash-form').addEventListener('submit', (event) => {
            event.preventDefault();
            this.#go();
        });
        byId('flash-form').addEventListener('change', () => this.#note());
    }

    /** @param {boolean} on */
    open(on) {
        byId('flash').hidden = !on;
        byId('open-flash').setAttribute('aria-expanded', String(on));
        if (on) {
            byId('flash-models').querySelector('input')?.focus();
        } else if (document.activeElement === document.body) {
            byId('open-flash').focus();
        }
    }

    #options() {
        const option = (value, title, text, checked, ...more) => el('label', {},
            el('input', { type: 'radio', name: 'model', value, checked }), ' ', el('span', {}, el('b', {}, title), el('small', {}, text), ...more));
        const made = this.#models.map((model, i) => {
            const made = option(String(i), model.name, 'is being made for the chip', i === 0);
            model.whole.then(() => {
                const image = model.board?.[CHIP.target];
                made.querySelector('small').textContent = image ? `${bytes(image.bytes)}, SHA-256 ${image.sha256.slice(0, 12)}…`
                    : `cannot go on the ${CHIP.name}: ${model.refused ?? 'it was not exported'}`;
            });
            return made;
        });
        const choose = el('button', { type: 'button', class: 'quiet', id: 'choose-folder', 'aria-label': 'Choose a folder' }, 'Choose');
        choose.addEventListener('click', () => byId('flash-folder').click());
        const own = option('folder', 'A folder', 'that chiplm export wrote', made.length === 0);
        own.querySelector('small').id = 'folder-told';
        byId('flash-models').replaceChildren(...made, el('div', { class: 'own' }, own, choose));
        this.#note();
    }

    get #choice() {
        return byId('flash-form').elements.model.value;
    }

    async #note() {
        const load = this.#choice === 'folder' ? await this.#folder?.catch(() => null) : null;
        const version = load?.version || this.#firmware?.version || '';
        const has = this.#choice === 'folder' ? Boolean(load?.firmware) : this.#firmware !== null;
        byId('flash-firmware').replaceChildren(...(has ? [`${version ? `version ${version}; ` : ''}what is there already is not written again`]
            : this.#choice === 'folder' ? ['the folder carries no firmware: only the model is written']
                : ['no firmware is at hand (', el('code', {}, 'chiplm page --firmware'), '): only the model is written']));
    }

    #take(files) {
        if (files.length === 0) {
            return;
        }
        byId('flash-form').elements.model.value = 'folder';
        const load = folderLoad(files);
        this.#folder = load;
        const told = byId('folder-told');
        told.textContent = 'is checked …';
        load.then(({ title, model }) => {
            told.textContent = `${title}: ${bytes(model.bytes.length)}, SHA-256 ${model.sha256.slice(0, 12)}…`;
            this.#way.set({ trouble: null });
        }, (error) => {
            told.textContent = 'that chiplm export wrote';
            this.#folder = null;
            this.#way.set({ trouble: troubleOf(error) });
        }).then(() => this.#note());
    }

    async #go() {
        const { elements } = byId('flash-form');
        const folder = this.#folder;
        const choice = this.#choice;
        if (choice === 'folder' && folder === null) {
            this.#way.set({ trouble: new Trouble('no-folder', 'No folder was chosen.', 'Choose one that chiplm export wrote, or a released model.') });
            return;
        }
        const entry = this.#models[Number(choice)];
        let got = 0;
        const size = () => (entry.board?.[CHIP.target]?.bytes ?? 0)
            + (this.#firmware?.files ?? []).reduce((sum, file) => sum + file.bytes, 0);
        const load = async () => (choice === 'folder' ? folder : releasedLoad(await entry.whole, this.#firmware, {
            onBytes: (n) => {
                got += n;
                this.#meter(size() > 0 ? Math.min(1, got / size()) : null, STEPS.load);
            },
        }));
        this.#running(true);
        const done = await this.#way.flash({ load, modelOnly: elements.what.value === 'model', tell: this.#tell() });
        this.#running(false);
        if (done) {
            this.#meter(1, 'The board holds what was chosen, and has started.');
            this.#state((row) => (row.dataset.same === 'true' ? 'unchanged' : 'verified'));
            this.#say('Flashing is done: the board holds what was chosen, and has started.');
        } else {
            byId('flash-run').hidden = true;
            byId('flash-go').focus();
        }
    }

    #running(on) {
        for (const field of byId('flash-form').querySelectorAll('fieldset, #flash-go, #flash-close')) {
            field.disabled = on;
        }
        byId('flash-go').hidden = on;
        byId('flash-stop').hidden = !on;
        if (on) {
            byId('flash-run').hidden = false;
            byId('flash-plan').hidden = true;
            this.#meter(null, 'Waiting for a port');
            byId('flash-stop').focus();
        }
    }

    #meter(share, text) {
        setMeter(byId('flash-run').querySelector('.meter'), share, text);
    }

    #tell() {
        this.#begun = 0;
        this.#quarter = 0;
        return {
            onStep: (step) => {
                if (step !== 'write') {
                    this.#meter(step === 'verify' ? 1 : null, STEPS[step]);
                    this.#say(STEPS[step]);
                }
            },
            onPlan: (writes) => this.#plan(writes),
            onProgress: (progress) => this.#progress(progress),
        };
    }

    #plan(writes) {
        const rows = writes.map((write) => {
            const row = el('tr', {}, el('th', { scope: 'row' }, write.name), el('td', {}, address(write.offset)),
                el('td', {}, whole(write.size)), el('td', { title: write.sha256 }, `${write.sha256.slice(0, 12)}…`), el('td', { class: 'state' }));
            row.dataset.name = write.name;
            row.dataset.same = String(write.same);
            return row;
        });
        byId('flash-plan').tBodies[0].replaceChildren(...rows);
        byId('flash-plan').hidden = false;
        this.#state((row) => (row.dataset.same === 'true' ? 'unchanged' : 'waiting'));
    }

    #state(of) {
        for (const row of byId('flash-plan').tBodies[0].rows) {
            row.querySelector('.state').textContent = of(row);
        }
    }

    #progress({ name, done, total }) {
        const now = performance.now();
        this.#begun ||= now;
        const seconds = (now - this.#begun) / 1000;
        const rest = done > 0 && seconds > SETTLE ? `, ${left((total - done) / done * seconds)}` : '';
        this.#meter(done / total, `Writing: ${bytes(done)} of ${bytes(total)}${rest}`);
        this.#state((row) => (row.dataset.same === 'true' ? 'unchanged' : row.dataset.name === name ? 'being written'
            : row.querySelector('.state').textContent === 'being written' ? 'written' : row.querySelector('.state').textContent));
        const quarter = Math.floor(4 * done / total);
        if (quarter > this.#quarter) {
            this.#quarter = quarter;
            this.#say(`${25 * quarter} percent written${rest}`);
        }
    }
}
