/* The program under test, started as users start it. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../../', import.meta.url));

/** The program under test: make build makes it. */
export const chiplm = process.env.CHIPLM ?? `${root}chiplm`;

/**
 * Starts a program that says where it listens.
 * @param {string[]} args
 * @param {RegExp} where
 * @returns {Promise<{address: string, said: () => string, end: () => Promise<void>}>}
 */
export async function start(args, where) {
    const child = spawn(chiplm, args, { cwd: root });
    let said = '';
    const exit = new Promise((resolve) => { child.on('exit', resolve); });
    const address = await new Promise((resolve, reject) => {
        const hear = (bytes) => {
            said += bytes;
            const found = where.exec(said);
            if (found !== null) {
                resolve(found[0]);
            }
        };
        child.stdout.on('data', hear);
        child.stderr.on('data', hear);
        child.on('error', reject);
        exit.then((code) => reject(new Error(`chiplm ${args.join(' ')} ended with ${code}: ${said}`)));
    });
    return {
        address,
        said: () => said,
        async end() {
            child.kill('SIGINT');
            await exit;
        },
    };
}

/** Serves the page. @param {string[]} [more] arguments */
export function servePage(more = []) {
    return start(['page', '--no-open', '--listen', '127.0.0.1:0', ...more], /http:\/\/127\.0\.0\.1:\d+\/?/);
}

/** Starts a virtual board. @param {string} model @param {string[]} [more] arguments */
export function virtualBoard(model, more = []) {
    return start(['board', '--virtual', model, '--listen', '127.0.0.1:0', ...more], /ws:\/\/127\.0\.0\.1:\d+\/?/);
}
