/*
 * A firmware for tests that fail on purpose: it answers the protocol's requests from a script, where the virtual board would
 * be too well-behaved.
 */

const model = {
    image_bytes: 4088832, image_crc32: '060d3bd9', model_sha256: 'ab'.repeat(32), tokenizer_sha256: 'cd'.repeat(32), vocab_size: 4096,
    d_model: 128, n_layers: 6, n_heads: 4, d_ff: 288, ple_dim: 128, experts: 1, context_length: 256, clusters: 256, end_of_text: 0,
};

/**
 * What a board says of itself.
 * @param {object} [change] fields that differ
 */
export function info(change = {}) {
    return {
        format: 'chiplm-info-1', protocol: 1, firmware: 'v1.2-test', target: 'esp32s3', chip: 'ESP32-S3 v0.2', cores: 2, clock_mhz: 240,
        path: 'pie', psram_mode: 'octal', psram_mhz: 80, psram_bytes: 8388608, line_bytes: 4096, error: null, model,
        memories: [
            { name: 'sram', total: 290000, free: 9600, largest: 9600, lent: 0, buffers: 110000, weights: 168512 },
            { name: 'psram', total: 8323072, free: 6758464, largest: 6758464, lent: 0, buffers: 551552, weights: 1013056 },
        ],
        ...change,
    };
}

/** What a board says that did not start. */
export function failed(code, message, change = {}) {
    return info({ error: { code, message }, model: undefined, ...change });
}

const PROFILE = '{"format":"chiplm-profile-1","tokens":4,"us":5000,"profile":[{"operation":"head","us":3000},{"operation":"qkv","us":2000}]}';

/**
 * A program for a Chip.
 * @param {object} [options]
 * @param {object} [options.says] what I answers
 * @param {string[]} [options.words] the tokens of every story
 * @param {number} [options.every] ms between two of them
 * @param {(i: number, say: (text: string) => void) => boolean | void} [options.before] is called before token i; true: it is left out
 * @param {string} [options.digest]
 * @param {string} [options.profile] what Q answers
 */
export function firmware({ says = info(), words = [' there', ' was', ' a', ' frog', '.'], every = 5, before = () => {}, digest = '0x0123456789abcdef', profile = PROFILE } = {}) {
    return {
        connect(send) {
            const say = (text) => send(Uint8Array.from(text, (c) => c.charCodeAt(0)));
            let held = '';
            let timer = null;
            let count = 0;
            const escaped = (text) => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
            const end = (why) => {
                clearInterval(timer);
                timer = null;
                say(`E ${count} ${every.toFixed(2)} ${why}\r\n`);
            };
            const story = (most) => {
                clearInterval(timer);
                count = 0;
                say('P 12.5\r\n');
                timer = setInterval(() => {
                    const i = count;
                    if (i >= Math.min(most, words.length)) {
                        end(i === words.length ? 'end' : 'length');
                        return;
                    }
                    count++;
                    if (before(i, say) !== true) {
                        say(`T ${i + 1} ${i === 0 ? 14 : every * 1000} ${escaped(words[i])}\r\n`);
                    }
                }, every);
            };
            const answer = (line) => {
                const [kind, first] = line.split(' ');
                if (kind === 'X' && timer !== null) {
                    end('stopped');
                } else if (kind === 'V') {
                    say('V 1\r\n');
                } else if (kind === 'I') {
                    say(`${JSON.stringify(says)}\r\n`);
                } else if (kind === 'S' || kind === 'D') {
                    if (says.error !== null) {
                        say(`! ${says.error.code} ${says.error.message}\r\n`);
                    } else {
                        kind === 'S' ? story(Number(first)) : say(`${line} ${digest}\r\n`);
                    }
                } else if (line === 'Q') {
                    say(`${profile}\r\n`);
                } else if (kind === 'Q') {
                    say(`${line}\r\n`);
                }
            };
            say(says.error === null ? '# ready\r\n' : `# not ready: ${says.error.code} ${says.error.message}\r\n`);
            return {
                write(bytes) {
                    const lines = (held + String.fromCharCode(...bytes)).split('\n');
                    held = lines.pop();
                    lines.filter(Boolean).forEach(answer);
                },
                close() {
                    clearInterval(timer);
                },
            };
        },
    };
}
