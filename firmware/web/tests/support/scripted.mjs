/*
 * A stream with a board at its other end that says what a test tells it to.
 */
import { ByteQueue } from '../../page/byte-queue.js';

const bytesOf = (text) => Uint8Array.from(text, (c) => c.charCodeAt(0));

/**
 * @param {(line: string, say: (text: string) => void) => void} answer is given each line but those of a greeting; X too
 * @param {{version?: string, silent?: boolean}} [options]
 */
export function scripted(answer, { version = 'V 1\n', silent = false } = {}) {
    const queue = new ByteQueue();
    const lines = [];
    let held = '';
    const say = (text) => queue.push(bytesOf(text));
    return {
        /** Every line that was sent. */
        lines,
        say,
        /** The cable is pulled. */
        pull: () => queue.end(new Error('lost')),
        stream: {
            name: 'the test’s port',
            read: () => queue.read(),
            async write(bytes) {
                held += String.fromCharCode(...bytes);
                const whole = held.split('\n');
                held = whole.pop();
                for (const line of whole) {
                    lines.push(line);
                    if (line === 'V' && !silent) {
                        say(version);
                    } else if (line !== '') {
                        answer(line, say);
                    }
                }
            },
            async close() {
                queue.end();
            },
        },
    };
}
